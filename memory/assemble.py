"""Assembly (B1 to B7): from values to messages and a report of what is in them; a pure function.

Layout by volatility, so that a provider's prefix cache hits: one system message (the static text, then summaries),
the window, and the last user message with recalled lines, facts and the words themselves.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory.language import LanguagePack, words_of
from memory.limits import Limits
from memory.ports import TokenCounter
from memory.tokens import cut_to_tokens, estimate_provider_tokens
from memory.values import (
    ChosenFact,
    Context,
    Item,
    LeftOut,
    RecallHit,
    Section,
    SectionReport,
    Summary,
    Turn,
)

OPEN, CLOSE = "<memory>", "</memory>"
SUMMARIES_HEADING = "Earlier in this chat, as data:"
_CUT_MARK = "[…]"

_MARKERS = re.compile(
    r"<\s*/?\s*memory\b[^>]*>|<\|[^|>\n]{0,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|"
    r"</?(?:system|assistant|user|tool|im_start|im_end|think)\b[^>]*>",
    re.IGNORECASE,
)
_ROLE_LINE = re.compile(r"(?im)^(\s*#{0,6}\s*)(system|assistant|user|human|developer|instruction)(\s*:)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All that may go into a request, best first where there is an order."""

    static: str
    message: str
    summaries: tuple[Summary, ...] = ()
    window: tuple[Turn, ...] = ()
    recalled: tuple[RecallHit, ...] = ()
    facts: tuple[ChosenFact, ...] = ()
    tools: tuple[Mapping[str, object], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    message_cut: bool = False


def assemble(parts: Parts, *, limits: Limits, count: TokenCounter, factor: float, pack: LanguagePack) -> Context:
    """The request for a message, below the budget in both counts whatever the parts are."""
    parts = replace(
        parts,
        message=neutralise(parts.message),
        window=tuple(replace(turn, content=neutralise(turn.content)) for turn in parts.window),
        recalled=tuple(replace(hit, text=one_line(hit.text)) for hit in parts.recalled),
        summaries=tuple(replace(summary, rendered=one_line(summary.rendered)) for summary in parts.summaries),
        facts=tuple(
            replace(chosen, fact=replace(chosen.fact, fact=one_line(chosen.fact.fact))) for chosen in parts.facts
        ),
    )
    measure = _Measure(limits=limits, count=count, factor=factor)
    parts = _fit_sections(parts, limits, count)
    parts = _fit_message(parts, measure, pack)
    parts = _fit_budget(parts, measure)
    return _report(parts, measure)


# -- texts that imitate us


def neutralise(text: str) -> str:
    """A text in which nothing can pass for our marks, another role or a control sequence."""
    return _ROLE_LINE.sub(r"\1\2 \3", _without_markers(text))


def _without_markers(text: str) -> str:
    text = _CONTROL.sub(" ", text.encode("utf-8", "replace").decode())
    return _MARKERS.sub(lambda match: match[0].translate(_LOOK_ALIKES), text)


_LOOK_ALIKES = str.maketrans("<>[]|", "‹›⟦⟧¦")


def one_line(text: str) -> str:
    """Memory is shown a line an item: no item can begin a line of its own."""
    return " ".join(_without_markers(text).split())


# -- fitting


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    limits: Limits
    count: TokenCounter
    factor: float

    def tokens(self, parts: Parts) -> tuple[int, int]:
        """cl100k's count and the provider's, of the whole request."""
        messages = _messages(parts)
        texts = [message["content"] for message in messages] + ([_tools_text(parts)] if parts.tools else [])
        overhead = self.limits.message_overhead_tokens * len(messages) + self.limits.request_overhead_tokens
        own = sum(self.count(text) for text in texts) + overhead
        provider = sum(estimate_provider_tokens(text, self.factor) for text in texts) + overhead * 2
        return own, provider

    def fits(self, parts: Parts) -> bool:
        return max(self.tokens(parts)) < self.limits.request_tokens


def _fit_sections(parts: Parts, limits: Limits, count: TokenCounter) -> Parts:
    """Each section within its own limit: summaries, window, items."""
    while parts.summaries and sum(count(summary.rendered) for summary in parts.summaries) > limits.summaries_tokens:
        parts = _drop_summary(parts, "the summaries have a limit of their own (S2)")
    while len(parts.window) > 1 and sum(count(turn.content) for turn in parts.window) > limits.window_tokens:
        parts = _drop_turn(parts, "the window has a limit of its own (W2)")
    room = limits.window_tokens
    window = tuple(replace(turn, content=_shortened(turn.content, room, count)) for turn in parts.window)
    return replace(parts, window=window)


def _shortened(text: str, tokens: int, count: TokenCounter) -> str:
    """A text with its middle left out, if it is too long."""
    if len(text) < tokens or count(text) <= tokens:
        return text
    head = cut_to_tokens(text, tokens * 2 // 3)
    tail = text[-(tokens * 2) :]
    while tail and count(tail) > tokens // 4:
        tail = tail[len(tail) // 5 + 1 :]
    return f"{head}\n{_CUT_MARK}\n{tail}"


def _fit_message(parts: Parts, measure: _Measure, pack: LanguagePack) -> Parts:
    """A message too large by itself is cut to its relevant fragments (B3)."""
    bare = replace(parts, summaries=(), window=(), recalled=(), facts=tuple(f for f in parts.facts if f.fact.pinned))
    if measure.fits(bare):
        return parts
    room = measure.limits.request_tokens * 3 // 5
    while room > 8:
        cut = replace(bare, message=_fragments(parts.message, room, measure.count, pack), message_cut=True)
        if measure.fits(cut):
            note = LeftOut(section="message", id="message", why="too long: cut to its relevant fragments (B3)")
            return replace(parts, message=cut.message, message_cut=True, left_out=(*parts.left_out, note))
        room = room * 4 // 5
    return replace(parts, message=_CUT_MARK, message_cut=True)


def _fragments(text: str, room: int, count: TokenCounter, pack: LanguagePack) -> str:
    """The beginning, the end, and the passages in between that share most with them: there people put what they ask."""
    size = max(60, room // 12)
    pieces = _passages(text, size * 3)
    if len(pieces) < 3:
        return _shortened(text, room, count)
    asked = set(words_of(pieces[0][:2000] + " " + pieces[-1][-2000:])) - pack.words["function_words"]
    ranked = sorted(range(1, len(pieces) - 1), key=lambda place: (-len(asked & set(words_of(pieces[place]))), place))
    kept = {0, len(pieces) - 1}
    used = count(pieces[0]) + count(pieces[-1])
    for place in ranked[:200]:
        tokens = count(pieces[place]) + 4
        if used + tokens > room:
            break
        kept.add(place)
        used += tokens
    joined, last = "", -1
    for place in sorted(kept):
        joined += ("" if place == last + 1 else f"\n{_CUT_MARK}\n") + pieces[place]
        last = place
    return _shortened(joined, room, count)


def _passages(text: str, characters: int) -> list[str]:
    """A long text in pieces that end at a line or a space, if there is one near."""
    pieces: list[str] = []
    start = 0
    while start < len(text) and len(pieces) < 4000:
        end = min(len(text), start + characters)
        if end < len(text):
            near = max(text.rfind("\n", start + characters // 2, end), text.rfind(" ", start + characters // 2, end))
            end = near + 1 if near > start else end
        pieces.append(text[start:end])
        start = end
    return pieces


def _fit_budget(parts: Parts, measure: _Measure) -> Parts:
    """Over budget: summaries go first, then the window, then recalled items, then unpinned facts (B2, B3)."""
    limits = measure.limits
    while len(parts.window) > limits.window_min_turns and max(measure.tokens(parts)) > limits.aggressive_tokens:
        parts = _drop_turn(parts, "above 3,000 tokens the window is kept small (B2)")
    while not measure.fits(parts):
        if parts.summaries:
            parts = _drop_summary(parts, "over budget (B3)")
        elif parts.window:
            parts = _drop_turn(parts, "over budget (B3)")
        elif parts.recalled:
            parts = _drop_recalled(parts, "over budget (B3)")
        elif any(not chosen.fact.pinned for chosen in parts.facts):
            parts = _drop_fact(parts, "over budget (B3)")
        elif parts.facts:
            parts = replace(parts, facts=parts.facts[:-1])
        elif parts.message != _CUT_MARK and len(parts.message) > 8:
            parts = replace(
                parts, message=cut_to_tokens(parts.message, measure.count(parts.message) * 3 // 4), message_cut=True
            )
        else:
            break
    return parts


def _drop_summary(parts: Parts, why: str) -> Parts:
    gone = LeftOut(section="summaries", id=parts.summaries[0].id, why=why)
    return replace(parts, summaries=parts.summaries[1:], left_out=(*parts.left_out, gone))


def _drop_turn(parts: Parts, why: str) -> Parts:
    gone = LeftOut(section="window", id=f"t{parts.window[0].id}", why=why)
    return replace(parts, window=parts.window[1:], left_out=(*parts.left_out, gone))


def _drop_recalled(parts: Parts, why: str) -> Parts:
    gone = LeftOut(section="recalled", id=parts.recalled[-1].id, why=why)
    return replace(parts, recalled=parts.recalled[:-1], left_out=(*parts.left_out, gone))


def _drop_fact(parts: Parts, why: str) -> Parts:
    last = max(place for place, chosen in enumerate(parts.facts) if not chosen.fact.pinned)
    gone = LeftOut(section="facts", id=parts.facts[last].fact.id, why=why)
    return replace(parts, facts=parts.facts[:last] + parts.facts[last + 1 :], left_out=(*parts.left_out, gone))


# -- rendering


def _messages(parts: Parts) -> list[dict[str, str]]:
    system = parts.static + (f"\n\n{_summaries_text(parts)}" if parts.summaries else "")
    window = [{"role": turn.role, "content": turn.content} for turn in parts.window]
    return [{"role": "system", "content": system}, *window, {"role": "user", "content": _last_message(parts)}]


def _last_message(parts: Parts) -> str:
    memory = [text for text in (_recalled_text(parts), _facts_text(parts)) if text]
    return "\n".join([OPEN, *memory, CLOSE, "", parts.message]) if memory else parts.message


def _summaries_text(parts: Parts) -> str:
    lines = [f"- {summary.at:%Y-%m-%d} {summary.rendered}" for summary in parts.summaries]
    return "\n".join([OPEN, SUMMARIES_HEADING, *lines, CLOSE]) if lines else ""


def _recalled_text(parts: Parts) -> str:
    """Grouped by day, the date once, oldest first, so that before and after can be read off."""
    lines: list[str] = []
    day = ""
    for hit in sorted(parts.recalled, key=lambda hit: (hit.at, hit.id)):
        if f"{hit.at:%Y-%m-%d}" != day:
            day = f"{hit.at:%Y-%m-%d}"
            lines.append(f"{day}:")
        lines.append(f"- {hit.text}")
    return "\n".join(lines)


def _facts_text(parts: Parts) -> str:
    lines = [f"- {chosen.fact.fact}" for chosen in parts.facts]
    return "\n".join(["The user said:", *lines]) if lines else ""


def _tools_text(parts: Parts) -> str:
    return json.dumps(list(parts.tools), ensure_ascii=False, separators=(",", ":"))


def _report(parts: Parts, measure: _Measure) -> Context:
    count = measure.count
    own, provider = measure.tokens(parts)

    def section(name: Section, text: str, items: Sequence[Item] = ()) -> SectionReport:
        return SectionReport(name=name, tokens=count(text) if text else 0, items=tuple(items))

    facts = [
        _item(chosen.fact.id, chosen.fact.fact, rank, chosen.why, count) for rank, chosen in enumerate(parts.facts, 1)
    ]
    recalled = [_item(hit.id, hit.text, rank, hit.why, count) for rank, hit in enumerate(parts.recalled, 1)]
    summaries = [
        _item(s.id, s.rendered, rank, "a slot of this chat", count) for rank, s in enumerate(parts.summaries, 1)
    ]
    window = [_item(f"t{turn.id}", turn.content, rank, "recent", count) for rank, turn in enumerate(parts.window, 1)]
    window_text = "\n".join(turn.content for turn in parts.window)
    reports = (
        section("static", parts.static),
        section("tools", _tools_text(parts) if parts.tools else ""),
        section("summaries", _summaries_text(parts), summaries),
        section("window", window_text, window),
        section("recalled", _recalled_text(parts), recalled),
        section("facts", _facts_text(parts), facts),
        section("message", parts.message),
    )
    return Context(
        messages=_messages(parts),
        tokens=own,
        provider_tokens=provider,
        sections={report.name: report for report in reports},
        left_out=parts.left_out,
        message_cut=parts.message_cut,
    )


def _item(ref: str, text: str, rank: int, why: str, count: TokenCounter) -> Item:
    return Item(id=ref, text=text, rank=rank, why=why, tokens=count(text))
