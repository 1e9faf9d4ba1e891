"""Statements (M1): what turns say, as short lines that stand alone, in the speaker's own words and language."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from functools import cache

from memory.language import LanguagePack, detect, fold, words_of
from memory.limits import Limits
from memory.signals import is_question, sentences, without_quoted
from memory.stores.index import stems
from memory.times import spans
from memory.tokens import count_tokens, cut_to_tokens
from memory.values import Statement, StatementKind, Turn
from memory.window import asks
from memory.worth import Around, worth

# a capital inside a sentence; "Dr." and the like do not end one
_NAME = re.compile(r"(?:(?<=[\w,;:’'\"“] )|(?<=\b[DM]r\. )|(?<=\bMrs\. ))[A-ZÀ-ÖØ-Þ][\w'’-]+(?: [A-ZÀ-ÖØ-Þ][\w'’-]+)*")
_DIGITS = re.compile(r"\d+")
_SPACE = re.compile(r"\s{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What statements are made against: what is stored already, and what was said around the turns."""

    said: Mapping[str, int]  # in how many stored lines a stem occurs
    lines: int  # how many lines are stored
    before: str = ""  # the turn before the first
    after: str = ""  # the turn after the last


def statements_of(
    turns: Sequence[Turn], setting: Setting, packs: Mapping[str, LanguagePack], limits: Limits, zone: tzinfo
) -> list[Statement]:
    """The statements of a segment, in order: a line a turn, without what is not worth keeping."""
    found: list[Statement] = []
    names = {turn.speaker for turn in turns}
    for place, turn in enumerate(turns):
        previous = turns[place - 1] if place else None
        before = previous.content if previous else setting.before
        pack = packs[detect(turn.content, turn.language, packs)]
        around = Around(
            names=frozenset(stem for name in names for stem in stems(name, pack)),
            before=frozenset(stems(before, pack)),
            said=setting.said,
            lines=setting.lines,
        )
        kept = _kept(turn, previous, around, pack, limits)
        context = _context((setting.before, *(one.content for one in turns), setting.after), pack)
        for text in _lines(turn, kept, pack, limits, zone):
            found.append(_statement(turn, text, context, pack))
    return found


def words_in(turns: Sequence[Turn], packs: Mapping[str, LanguagePack]) -> set[str]:
    """All stems of some turns: how often they were said before tells what is new in them."""
    return {stem for turn in turns for stem in stems(turn.content, packs[detect(turn.content, turn.language, packs)])}


def said_by(statement: Statement) -> str:
    """A statement without its speaker: what it is searched by."""
    return statement.text.removeprefix(f"{statement.speaker}: ")


def _kept(turn: Turn, previous: Turn | None, around: Around, pack: LanguagePack, limits: Limits) -> list[str]:
    """The sentences of a turn that are worth keeping; a bare answer comes with the question it answers."""
    said = [" ".join(sentence.split()) for sentence in sentences(without_quoted(turn.content))]
    question = _last_question(previous) if previous and previous.speaker != turn.speaker and asks(previous) else ""
    content = [stem for sentence in said for stem in stems(sentence, pack)]
    if question and len(content) <= 4 and worth(question, around, pack) >= limits.statement_worth:
        answer = " ".join(said)
        return [f"({question}) {answer}"] if answer and not is_question(answer, pack) else []
    return [sentence for sentence in said if worth(sentence, around, pack) >= limits.statement_worth]


def _lines(turn: Turn, kept: Sequence[str], pack: LanguagePack, limits: Limits, zone: tzinfo) -> Iterator[str]:
    """The sentences as lines short enough for an item, the speaker before each."""
    today = turn.timestamp.astimezone(zone).date()
    line = ""
    for sentence in kept:
        dated = _dated(_trimmed(sentence, pack), today, pack)
        for piece in _pieces(f"{turn.speaker}: ", dated, limits):
            if line and count_tokens(f"{line} {piece}") > limits.statement_tokens:
                yield line
                line = ""
            line = f"{line} {piece}" if line else f"{turn.speaker}: {piece}"
    if line:
        yield line


def _pieces(prefix: str, text: str, limits: Limits) -> Iterator[str]:
    """A sentence, cut at a space where it is too long for an item."""
    room = limits.item_tokens - count_tokens(prefix) - 2
    while text:
        piece = cut_to_tokens(text, room)
        if len(piece) < len(text) and " " in piece[len(piece) // 2 :]:
            piece = piece[: piece.rfind(" ")]
        if not piece:
            return
        yield piece
        text = text[len(piece) :].strip()


def _trimmed(sentence: str, pack: LanguagePack) -> str:
    """A sentence without what stands before it ("Wow, ") and what only adds weight ("really"), if enough is left."""
    content = set(stems(sentence, pack))
    for pattern in _trimmings(pack):
        shorter = _SPACE.sub(" ", pattern.sub("", sentence)).strip()
        if len(set(stems(shorter, pack))) >= 0.8 * len(content) and shorter.strip(" .!?,"):
            sentence = shorter
    return sentence


@cache
def _trimmings(pack: LanguagePack) -> tuple[re.Pattern[str], ...]:
    def either(key: str) -> str:
        return "|".join(re.escape(word) for word in sorted(pack.statements[key], key=len, reverse=True)) or "(?!)"

    if pack.script == "han":
        return (re.compile(rf"^(?:(?:{either('lead_ins')})[，,！!。～~\s]+)+"),)
    return (
        re.compile(rf"^[¡¿]?(?:(?:{either('lead_ins')})\b\s*[,!.:–—-]+\s*(?=\w))+", re.IGNORECASE),
        re.compile(rf"\b(?:{either('intensifiers')})\b (?=\w)", re.IGNORECASE),
        re.compile(rf"\b(?:{either('articles')})\b (?=\w)", re.IGNORECASE),
    )


def _dated(sentence: str, today: date, pack: LanguagePack) -> str:
    """A sentence whose relative times say their date: "yesterday (2023-05-07)"."""
    for span in reversed(spans(sentence, today, pack)):
        if span.relative and span.since != today:  # the day itself is the item's date
            sentence = f"{sentence[: span.end]} ({span}){sentence[span.end :]}"
    return sentence


def _context(texts: Sequence[str], pack: LanguagePack) -> tuple[str, ...]:
    """The words said around a line, without their order: it is found by them, and they cannot be read back."""
    return tuple(sorted({stem for text in texts for stem in stems(text, pack)}))


def _statement(turn: Turn, text: str, context: tuple[str, ...], pack: LanguagePack) -> Statement:
    body = text.removeprefix(f"{turn.speaker}: ")
    own = set(stems(body, pack))
    return Statement(
        id="",
        kind=_kind(turn, body, pack),
        text=text,
        speaker=turn.speaker,
        session_id=turn.session_id,
        turn_id=turn.id,
        language=pack.code,
        entities=_names(body, pack),
        at=turn.timestamp,
        context=tuple(stem for stem in context if stem not in own),
        gist=_gist(turn.speaker, body, pack),
    )


def _names(body: str, pack: LanguagePack) -> tuple[str, ...]:
    """Names in a line, by their capital; "I'm" has one too."""
    found = dict.fromkeys(match[0] for match in _NAME.finditer(body))
    return tuple(name for name in found if re.split("['’]", fold(name))[0] not in pack.words["function_words"])


def _gist(speaker: str, body: str, pack: LanguagePack) -> bytes:
    """Equal for lines that say the same in the same words (M3); another number, name or negation makes another one."""
    words = words_of(body)
    negated = sorted(word for word in words if word in pack.words["negations"])
    parts = (fold(speaker), *sorted(set(stems(body, pack))), "|", *negated, "|", *sorted(_DIGITS.findall(body)))
    return hashlib.sha256("\n".join(parts).encode()).digest()[:16]


def _kind(turn: Turn, body: str, pack: LanguagePack) -> StatementKind:
    if turn.role == "assistant":
        return "observation"
    folded = fold(body)
    if pack.hedge.search(folded) or pack.domain_words["preferences"].search(folded):
        return "opinion"
    own = pack.statements["first_person"]
    mine = any(word in body for word in own) if pack.script == "han" else bool(own & set(re.split(r"[^\w']+", folded)))
    return "experience" if mine else "world"


def _last_question(turn: Turn) -> str:
    found = [sentence for sentence in sentences(turn.content) if sentence.rstrip().endswith(("?", "？"))]
    return cut_to_tokens(" ".join(found[-1].split()), 40) if found else ""
