"""Assembly (B1 to B7): from values to messages and a report of what is in them; a pure function.

Layout by volatility, so that a provider's prefix cache hits: one system message (the static text, then summaries),
the window, and the last user message with recalled lines, facts and the words themselves.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from memory.language import LanguagePack, words_of
from memory.limits import Limits
from memory.marks import CLOSE, OPEN, neutralise, one_line
from memory.ports import TokenCounter
from memory.tokens import cut_to_tokens, provider_estimate
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
from memory.window import asks

SUMMARIES_HEADING = "Earlier in this chat:"
_CUT_MARK = "[…]"
_MOST_CHARACTERS = 32  # in a token, on average: only blanks have more
_EMPTY = "nothing of it can be shown"
_OVER = "over budget (B3)"


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
    addendum: str = ""  # after the static text: what is not sent every time (O1)
    pending: tuple[Mapping[str, object], ...] = ()  # messages to follow: calls of tools and their results
    recall_tokens: int | None = None  # the caller's limit on what is recalled; None: only the engine's own
    left_out: tuple[LeftOut, ...] = ()
    message_cut: bool = False


def assemble(
    parts: Parts,
    *,
    limits: Limits,
    count: TokenCounter,
    factor: float,
    pack: LanguagePack,
    ceiling: float | None = None,
) -> Context:
    """The request for a message, below the budget in both counts whatever the parts are.

    `factor` is what the model needs as a rule, for the report; `ceiling` the most it may need, for the budget (B6).
    """
    count = cache(count)  # most texts are the same in every attempt to make them fit
    estimate = cache(lambda text: provider_estimate(text, count(text)))
    ceiling = max(factor, ceiling or factor)
    measure = _Measure(limits=limits, count=count, estimate=estimate, factor=factor, ceiling=ceiling)
    parts = _neutralised(parts, limits, count)
    parts = _fit_sections(parts, limits, count)
    parts = _fit_tools(parts, measure)
    parts = _fit_message(parts, measure, pack)
    parts = _fit_budget(parts, measure)
    return _report(parts, measure)


def _neutralised(parts: Parts, limits: Limits, count: TokenCounter) -> Parts:
    """All texts made harmless, and no item longer for it than an item may be; one of which nothing is left goes."""

    def item(text: str) -> str:
        line = one_line(text)
        return line if count(line) <= limits.item_tokens else cut_to_tokens(line, limits.item_tokens)

    summaries = tuple(replace(summary, rendered=item(summary.rendered)) for summary in parts.summaries)
    recalled = tuple(replace(hit, text=item(hit.text)) for hit in parts.recalled)
    facts = tuple(replace(chosen, fact=replace(chosen.fact, fact=item(chosen.fact.fact))) for chosen in parts.facts)
    empty = [
        *(_gone("summaries", summary.id, _EMPTY) for summary in summaries if not summary.rendered),
        *(_gone("recalled", hit.id, _EMPTY) for hit in recalled if not hit.text),
        *(_gone("facts", chosen.fact.id, _EMPTY) for chosen in facts if not chosen.fact.fact),
    ]
    return replace(
        parts,
        message=neutralise(parts.message),
        window=tuple(replace(turn, content=neutralise(turn.content)) for turn in parts.window),
        summaries=tuple(summary for summary in summaries if summary.rendered),
        recalled=tuple(hit for hit in recalled if hit.text),
        facts=tuple(chosen for chosen in facts if chosen.fact.fact),
        left_out=(*parts.left_out, *empty),
    )


# -- fitting


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    limits: Limits
    count: TokenCounter
    factor: float
    ceiling: float
    estimate: Callable[[str], float]

    def tokens(self, parts: Parts, factor: float | None = None) -> tuple[int, int]:
        """cl100k's count and the provider's, of the whole request."""
        messages = _messages(parts)
        texts = [message["content"] for message in messages] + [text for text in _tools_texts(parts) if text]
        number = len(messages) + len(parts.pending)
        overhead = self.limits.message_overhead_tokens * number + self.limits.request_overhead_tokens
        own = sum(self.count(text) for text in texts) + overhead
        provider = sum(math.ceil(self.estimate(text) * (factor or self.factor)) for text in texts) + overhead * 2
        return own, provider

    def fits(self, parts: Parts) -> bool:
        return max(self.tokens(parts, self.ceiling)) < self.limits.request_tokens


def _fit_sections(parts: Parts, limits: Limits, count: TokenCounter) -> Parts:
    """Each section within its own limit, with its headings."""
    while parts.summaries and count(_summaries_text(parts)) > limits.summaries_tokens:
        parts = _drop_summary(parts, "the summaries have a limit of their own (S2)")
    while any(not f.fact.pinned for f in parts.facts) and count(_facts_text(parts)) > limits.facts_tokens:
        parts = _drop_fact(parts, "the facts have a limit of their own (F8)")
    recall = limits.recall_tokens if parts.recall_tokens is None else parts.recall_tokens
    parts = _keep_recalled(
        parts, lambda fewer: count(_recalled_text(fewer)) <= recall, "what is recalled has a limit of its own (B5)"
    )
    return _fit_window(parts, limits, count)


def _fit_window(parts: Parts, limits: Limits, count: TokenCounter) -> Parts:
    """The window within its limit (W2): the oldest turns go; the newest, which may be a question, loses its middle."""
    while len(parts.window) > 1 and _exceed([turn.content for turn in parts.window], limits.window_tokens, count):
        parts = _drop_turn(parts, "the window has a limit of its own (W2)")
    if not parts.window:
        return parts
    newest = parts.window[-1]
    short = neutralise(_shortened(newest.content, limits.window_tokens, count))  # a cut makes new lines
    if short == newest.content:
        return parts
    note = _gone("window", f"t{newest.id}", "too long for the window: its middle is left out (W2)")
    shortened = (*parts.window[:-1], replace(newest, content=short))
    return replace(parts, window=shortened, left_out=(*parts.left_out, note))


def _exceed(texts: Sequence[str], tokens: int, count: TokenCounter) -> bool:
    """Whether texts have more tokens than that; no megabyte is counted to know it."""
    return sum(map(len, texts)) > tokens * _MOST_CHARACTERS or sum(map(count, texts)) > tokens


def _fit_tools(parts: Parts, measure: _Measure) -> Parts:
    """Tools that would leave no room for a message are not offered, the last ones first."""
    room = cut_to_tokens(parts.message, measure.limits.item_tokens)
    bare = Parts(static=parts.static, message=room, tools=parts.tools, addendum=parts.addendum, pending=parts.pending)
    while bare.tools and not measure.fits(bare):
        name = _tool_name(bare.tools[-1], len(bare.tools))
        note = _gone("tools", name, "its description leaves no room for the message (B1)")
        bare = replace(bare, tools=bare.tools[:-1])
        parts = replace(parts, tools=bare.tools, left_out=(*parts.left_out, note))
    return parts


def _tool_name(tool: Mapping[str, object], place: int) -> str:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return str(name or f"tool {place}")


def _shortened(text: str, tokens: int, count: TokenCounter) -> str:
    """A text with its middle left out, if it is too long."""
    if not _exceed([text], tokens, count):
        return text
    head = cut_to_tokens(text, tokens * 2 // 3)
    tail = text[-(tokens * 2) :]
    while tail and count(tail) > tokens // 4:
        tail = tail[len(tail) // 5 + 1 :]
    return f"{head}\n{_CUT_MARK}\n{tail}"


def _fit_message(parts: Parts, measure: _Measure, pack: LanguagePack) -> Parts:
    """A message too large by itself is cut to its relevant fragments (B3)."""
    pinned = tuple(chosen for chosen in parts.facts if chosen.fact.pinned)
    bare = replace(parts, summaries=(), window=_question(parts, measure), recalled=(), facts=pinned)
    if not _exceed([parts.message], measure.limits.request_tokens, measure.count) and measure.fits(bare):
        return parts
    room = measure.limits.request_tokens * 3 // 5
    while room > 8:
        fragments = _fragments(parts.message, room, measure.count, pack)
        cut = replace(bare, message=neutralise(fragments))  # a cut makes new lines
        if measure.fits(cut):
            return _with_message(parts, cut.message)
        room = room * 4 // 5
    return _with_message(parts, _CUT_MARK)


def _with_message(parts: Parts, message: str) -> Parts:
    note = _gone("message", "message", "too long: cut to its relevant fragments (B3)")
    left_out = parts.left_out if parts.message_cut else (*parts.left_out, note)
    return replace(parts, message=message, message_cut=True, left_out=left_out)


def _question(parts: Parts, measure: _Measure) -> tuple[Turn, ...]:
    """The end of the assistant's question that the message answers: it is not cut from its answer (W3)."""
    if not parts.window or parts.window[-1].role != "assistant" or not asks(parts.window[-1]):
        return ()
    asked = parts.window[-1]
    if measure.count(asked.content) <= measure.limits.item_tokens:
        return (asked,)
    end = asked.content[-4 * measure.limits.item_tokens :]
    while measure.count(end) > measure.limits.item_tokens - 8:
        end = end[len(end) // 8 + 1 :]
    return (replace(asked, content=f"{_CUT_MARK} {end.lstrip()}"),)


def relevant_fragments(text: str, question: str, tokens: int, count: TokenCounter, pack: LanguagePack) -> str:
    """The passages of a text that share most with a question, in their order, within so many tokens."""
    asked = set(words_of(question)) - pack.words["function_words"]
    pieces = _passages(text, max(60, tokens))
    ranked = sorted(range(len(pieces)), key=lambda place: (-len(asked & set(words_of(pieces[place]))), place))
    kept: list[int] = []
    used = 0
    for place in ranked:
        size = count(pieces[place]) + 3
        if used + size <= tokens:
            kept.append(place)
            used += size
    if not kept:
        return cut_to_tokens(text, tokens)
    return cut_to_tokens(f"{_CUT_MARK} ".join(pieces[place].strip() + " " for place in sorted(kept)).strip(), tokens)


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
    question = _question(parts, measure)
    while not measure.fits(parts):
        if parts.summaries:
            parts = _drop_summary(parts, _OVER)
        elif len(parts.window) > len(question):
            parts = _drop_turn(parts, _OVER)
        elif parts.window != question:
            note = _gone("window", f"t{question[0].id}", "over budget: only the end of the question is left (B3, W3)")
            parts = replace(parts, window=question, left_out=(*parts.left_out, note))
        elif parts.recalled:
            parts = _keep_recalled(parts, measure.fits, _OVER)
        elif parts.facts:
            parts = _drop_fact(parts, _OVER)
        elif parts.window:
            question = ()
        elif len(parts.message) > len(_CUT_MARK):
            parts = _with_message(parts, cut_to_tokens(parts.message, measure.count(parts.message) * 3 // 4))
        else:
            break
    return parts


def _gone(section: Section, ref: str, why: str) -> LeftOut:
    return LeftOut(section=section, id=ref, why=why)


def _drop_summary(parts: Parts, why: str) -> Parts:
    gone = _gone("summaries", parts.summaries[0].id, why)
    return replace(parts, summaries=parts.summaries[1:], left_out=(*parts.left_out, gone))


def _drop_turn(parts: Parts, why: str) -> Parts:
    gone = _gone("window", f"t{parts.window[0].id}", why)
    return replace(parts, window=parts.window[1:], left_out=(*parts.left_out, gone))


def _keep_recalled(parts: Parts, fits: Callable[[Parts], bool], why: str) -> Parts:
    """As many recalled items as fit, the best ones; found by halving, for each look counts the whole text."""
    if not parts.recalled or fits(parts):
        return parts
    kept, too_many = 0, len(parts.recalled)
    while too_many - kept > 1:
        middle = (kept + too_many) // 2
        if fits(replace(parts, recalled=parts.recalled[:middle])):
            kept = middle
        else:
            too_many = middle
    gone = [_gone("recalled", hit.id, why) for hit in reversed(parts.recalled[kept:])]
    return replace(parts, recalled=parts.recalled[:kept], left_out=(*parts.left_out, *gone))


def _drop_fact(parts: Parts, why: str) -> Parts:
    """The last unpinned fact goes; a pinned one only when no other is left."""
    last = max(range(len(parts.facts)), key=lambda place: (not parts.facts[place].fact.pinned, place))
    gone = _gone("facts", parts.facts[last].fact.id, why)
    return replace(parts, facts=parts.facts[:last] + parts.facts[last + 1 :], left_out=(*parts.left_out, gone))


# -- rendering


def _messages(parts: Parts) -> list[dict[str, str]]:
    system = "\n\n".join(filter(None, [parts.static, parts.addendum, _summaries_text(parts)]))
    window = [{"role": turn.role, "content": turn.content} for turn in parts.window]
    return [{"role": "system", "content": system}, *window, {"role": "user", "content": _last_message(parts)}]


def _last_message(parts: Parts) -> str:
    memory = [text for text in (_recalled_text(parts), _facts_text(parts)) if text]
    return "\n".join([OPEN, *memory, CLOSE, "", parts.message]) if memory else parts.message


def _summaries_text(parts: Parts) -> str:
    lines = _by_day([(summary.at, summary.rendered) for summary in parts.summaries])
    return "\n".join([OPEN, SUMMARIES_HEADING, *lines, CLOSE]) if lines else ""


def _recalled_text(parts: Parts) -> str:
    """Oldest first, so that before and after can be read off."""
    return "\n".join(_by_day([(hit.at, hit.text) for hit in sorted(parts.recalled, key=lambda hit: (hit.at, hit.id))]))


def _by_day(dated: Sequence[tuple[datetime, str]]) -> list[str]:
    """A line an item, below the date of each day."""
    lines: list[str] = []
    day = ""
    for at, text in dated:
        if f"{at:%Y-%m-%d}" != day:
            day = f"{at:%Y-%m-%d}"
            lines.append(f"{day}:")
        lines.append(f"- {text}")
    return lines


def _facts_text(parts: Parts) -> str:
    """One that was not learnt lately carries its date, so that what came after it can be told to be newer."""
    lines = [f"- {one.fact.fact}" + (f" ({one.since:%Y-%m-%d})" if one.since else "") for one in parts.facts]
    return "\n".join(["The user said:", *lines]) if lines else ""


def _tools_texts(parts: Parts) -> list[str]:
    """What tools cost beside the messages: their descriptions, and what they were asked and answered."""
    found = (parts.tools, parts.pending)
    return [json.dumps(list(some), ensure_ascii=False, separators=(",", ":")) if some else "" for some in found]


def _report(parts: Parts, measure: _Measure) -> Context:
    count = measure.count
    own, provider = measure.tokens(parts)

    def section(name: Section, text: str, items: Sequence[Item] = ()) -> SectionReport:
        return SectionReport(name=name, tokens=count(text) if text else 0, items=tuple(items))

    facts = [
        _item(chosen.fact.id, chosen.fact.fact, rank, chosen.why, chosen.fact.last_confirmed_at, count)
        for rank, chosen in enumerate(parts.facts, 1)
    ]
    recalled = [_item(hit.id, hit.text, rank, hit.why, hit.at, count) for rank, hit in enumerate(parts.recalled, 1)]
    summaries = [
        _item(s.id, s.rendered, rank, "a slot of this chat", s.at, count) for rank, s in enumerate(parts.summaries, 1)
    ]
    window = SectionReport(name="window", tokens=sum(count(turn.content) for turn in parts.window))
    reports = (
        section("static", parts.static),
        section("tools", "".join([parts.addendum, *_tools_texts(parts)])),
        section("summaries", _summaries_text(parts), summaries),
        window,
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
        tools=parts.tools,
    )


def _item(ref: str, text: str, rank: int, why: str, at: datetime, count: TokenCounter) -> Item:
    return Item(id=ref, text=text, rank=rank, why=why, tokens=count(text), at=at)
