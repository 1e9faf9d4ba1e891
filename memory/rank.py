"""The ranking of recall: what speaks for each stored line as an answer to a question, added up and explained."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.language import fold
from memory.limits import Limits
from memory.values import FactState

_SESSION_LINES = 3  # of a session the best so many speak for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A stored line that may answer, and how it was found."""

    kind: str
    id: str
    text: str
    at: datetime
    source: str
    language: str = ""
    words: float = 0.0  # BM25
    meaning: float = 0.0  # cosine
    speaker: str = ""
    own: bool = False  # said by the user
    session: int = 0
    turn: int = 0
    entities: tuple[str, ...] = ()
    unread: float = 0.0  # how far it is on the way to being dropped, 0 to 1
    weight: float = 1.0  # what speaks for it whatever is asked
    state: FactState = "active"  # of the fact it says, if it says one (F13)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a question tells about its answer beside its words."""

    now: datetime
    speaker: str = ""  # the one speaker it names
    own: bool = False  # it is about the user themselves
    answered: bool = False  # it asks for what the assistant said
    names: frozenset[str] = frozenset()  # folded
    since: datetime | None = None  # the days it names
    until: datetime | None = None
    newest: bool = False  # it asks how things stand now
    advice: bool = False  # it asks for something that opinions bear on
    past: bool = False  # it asks about what was, what is the user's own, or somebody who was spoken of
    together: bool = False  # it asks for what was talked over: episodes answer that
    naming: bool = False  # it asks who, where, which of the things that have names
    numbers: re.Pattern[str] | None = None  # it asks how many, how much: what a number looks like
    given: frozenset[str] = frozenset()  # names that are no answer: its own words and the speakers


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A line with its score and the reasons for it."""

    line: Line
    score: float
    why: str


def rank(lines: Sequence[Line], asked: Asked, limits: Limits) -> list[Ranked]:
    """All lines, best first."""
    most_words = max((line.words for line in lines), default=0.0) or 1.0
    most_meaning = max((line.meaning for line in lines), default=0.0)
    most_meaning = most_meaning if most_meaning > 0 else 1.0
    bases: list[float] = []
    reasons: list[list[str]] = []
    for line in lines:
        parts = {
            "words": line.words / most_words,
            "meaning": limits.recall_meaning_weight * max(0.0, line.meaning) / most_meaning,
            "names": limits.recall_entity_weight * len(asked.names & _folded(line.entities)),
        }
        factors = {
            "speaker": limits.recall_speaker_weight if asked.speaker and line.speaker == asked.speaker else 1.0,
            "own": limits.recall_own_weight if asked.own and line.own else 1.0,
            "answer": limits.recall_answer_weight if asked.answered and line.kind == "observation" else 1.0,
            "opinion": limits.recall_opinion_weight if asked.advice and line.kind == "opinion" else 1.0,
            "standing": line.weight,
            "time": limits.recall_time_factor if _within(line.at, asked) else 1.0,
        }
        bases.append(sum(parts.values()) * math.prod(factors.values()))
        reasons.append(
            [f"{name} {value:.2f}" for name, value in parts.items() if value >= 0.005]
            + [f"{name} x{value:.1f}" for name, value in factors.items() if value != 1.0]
        )
    sessions, turns = _sessions(lines, bases), _turns(lines, bases)
    named = limits.recall_naming_weight * max(bases, default=0.0)
    ranked = []
    for line, base, why in zip(lines, bases, reasons, strict=True):
        near = max(turns.get((line.session, line.turn + step), 0.0) for step in (-1, 1)) if line.turn else 0.0
        extra = {
            "session": limits.recall_session_weight * sessions.get(line.session, 0.0) if line.session else 0.0,
            "neighbours": limits.recall_neighbour_weight * near,
            "a name": named if asked.naming and _names_one(line, asked) else 0.0,
            "a number": named if asked.numbers and _has_number(line, asked) else 0.0,
            "recency": _recency(line, asked, limits),
            "fading": -limits.recall_fading_weight * line.unread,
        }
        more = [f"{name} {value:+.2f}" for name, value in extra.items() if abs(value) >= 0.005]
        ranked.append(Ranked(line=line, score=base + sum(extra.values()), why=", ".join([*why, *more])))
    return sorted(ranked, key=lambda one: (-one.score, one.line.kind, one.line.id))


def _folded(names: Sequence[str]) -> set[str]:
    return {word for name in names for word in (fold(name), *fold(name).split())}


def _names_one(line: Line, asked: Asked) -> bool:
    """Whether a line has a name that may be the answer."""
    if asked.speaker and line.speaker != asked.speaker:
        return False
    return any(not _folded([name]) & asked.given for name in line.entities)


def _has_number(line: Line, asked: Asked) -> bool:
    """Whether a line has a number that may be the answer; the dates we put into it are none."""
    if asked.numbers is None or (asked.speaker and line.speaker != asked.speaker):
        return False
    return bool(asked.numbers.search(fold(_DATE.sub("", line.text))))


_DATE = re.compile(r"\(\d{4}[^)]*\)")


def _within(at: datetime, asked: Asked) -> bool:
    if asked.since is None or asked.until is None:
        return False
    return asked.since <= at < asked.until


def _recency(line: Line, asked: Asked, limits: Limits) -> float:
    days = max(0.0, (asked.now - line.at).total_seconds() / 86_400)
    weight = limits.recall_newest_weight if asked.newest else limits.recall_recency_weight
    return weight * math.exp(-days / limits.recall_recency_days)


def _sessions(lines: Sequence[Line], bases: Sequence[float]) -> Mapping[int, float]:
    """How good the best lines of each session are, on average; one that has fewer is thinner evidence."""
    found: dict[int, list[float]] = defaultdict(list)
    for line, base in zip(lines, bases, strict=True):
        found[line.session].append(base)
    return {
        session: sum(sorted(scores, reverse=True)[:_SESSION_LINES]) / _SESSION_LINES
        for session, scores in found.items()
    }


def _turns(lines: Sequence[Line], bases: Sequence[float]) -> Mapping[tuple[int, int], float]:
    found: dict[tuple[int, int], float] = {}
    for line, base in zip(lines, bases, strict=True):
        place = (line.session, line.turn)
        found[place] = max(found.get(place, 0.0), base)
    return found
