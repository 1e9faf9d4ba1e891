"""Key-value summaries of segments (S1, S2), extracted without a model: topic, discussed, outcome, decisions, open."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from memory.language import LanguagePack, detect, fold
from memory.limits import Limits
from memory.ports import Embedder
from memory.signals import is_question, sentences
from memory.stores.index import stems
from memory.tokens import count_tokens, cut_to_tokens
from memory.values import Turn

_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+(?:['’.-][^\W_\u3400-\u9fff]+)*|[^\w\s]")
# what makes a phrase stand for a segment
_REPEATED, _BY_USER, _IN_OPENING, _NAMED, _NEARNESS, _LONGER = 0.12, 0.05, 0.3, 0.25, 0.5, 0.1
_ELISION = re.compile(r"\b((?:d?all|dell|nell|sull|quest|quell|un|l|d|c)['’])(?=\w)", re.IGNORECASE)
_EDGES = " \t\n,;:.!?¿¡。，；：！？、-–—()（）\"'“”…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """What a person would note down of a segment."""

    topic: str
    discussed: tuple[str, ...] = ()
    outcome: str = ""
    decisions: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()


class Summariser(Protocol):
    """Turns a segment into notes; one that fails or is late is replaced by the default."""

    async def __call__(self, turns: Sequence[Turn], language: str) -> Notes:
        """The notes of a segment."""


class ExtractiveSummariser:
    """The default: picks the phrases that stand for the segment, its decisions and what was left open."""

    def __init__(self, embedder: Embedder, packs: Mapping[str, LanguagePack]) -> None:
        self._embedder = embedder
        self._packs = packs

    async def __call__(self, turns: Sequence[Turn], language: str) -> Notes:
        """The notes of a segment."""
        pack = self._packs[detect(" ".join(turn.content for turn in turns), language, self._packs)]
        phrases = await self._phrases(turns, pack)
        decisions = _decisions(turns, pack)
        return Notes(
            topic=", ".join(phrases[:3]) or _first_words(turns),
            discussed=tuple(phrases[3:6]),
            outcome="",
            decisions=decisions,
            open_questions=_open_questions(turns, pack),
        )

    async def _phrases(self, turns: Sequence[Turn], pack: LanguagePack) -> list[str]:
        """Key phrases, the one nearest to the whole segment first; none repeats the words of one before."""
        candidates = _candidates(turns, pack)
        if not candidates:
            return []
        texts = list(candidates)
        vectors = await self._embedder.embed([" ".join(turn.content for turn in turns)[:4000], *texts])
        nearness = vectors[1:] @ vectors[0]
        ranked = sorted(
            range(len(texts)), key=lambda place: -(_NEARNESS * float(nearness[place]) + candidates[texts[place]])
        )
        return _distinct([texts[place] for place in ranked], pack)


def _candidates(turns: Sequence[Turn], pack: LanguagePack) -> dict[str, float]:
    """Runs of content words, with a bonus for being repeated and for being the user's."""
    skipped = pack.words["function_words"] | pack.words["question_words"] | pack.words["filler"]
    skipped |= pack.words["greetings"] | pack.words["negations"] | pack.words["time_words"] | pack.words["replacing"]
    found: dict[str, float] = {}
    counts = Counter(stem for turn in turns for stem in stems(turn.content[:4000], pack))
    whole = fold(" ".join(turn.content for turn in turns)[:12_000])
    opening = _opening(turns)
    for turn in turns:
        text = " ".join(["", *_tokens(fold(turn.content[:4000])), ""])
        for phrase in _runs(turn.content[:4000], skipped, pack):
            here = [counts[stem] for stem in stems(phrase, pack)] or [1]
            often = whole.count(fold(phrase)) if pack.script == "han" else sum(here) / len(here)
            if pack.script == "han" and often < 2 and len(phrase) > 2 and not phrase.isascii():
                continue  # without spaces only repetition tells where a word ends
            score = _REPEATED * min(often - 1, 4) + (_BY_USER if turn.role == "user" else 0.0)
            score += _IN_OPENING if phrase in opening else 0.0
            score += _LONGER * (len(phrase) - 2) if pack.script == "han" else 0.0  # of a word and its half the word
            score += _NAMED if pack.is_named(text, phrase) else 0.0
            found[phrase] = max(found.get(phrase, 0.0), score)
    return found


def _opening(turns: Sequence[Turn]) -> str:
    """The first words of the user: there people say what they want to talk about."""
    asked = next((turn for turn in turns if turn.role == "user"), turns[0])
    return " ".join(sentences(asked.content)[:2])


def _runs(text: str, skipped: frozenset[str], pack: LanguagePack) -> list[str]:
    runs: list[str] = []
    words: list[str] = []
    for token in [*_tokens(text), "."]:
        if pack.script == "han" and re.match(r"[A-Za-z]", token) and len(token) > 1:
            runs.extend([*_pieces(words, pack), token])  # a foreign word among characters stands for itself
            words = []
        elif not re.match(r"\w", token) or fold(token) in skipped or (token.isdigit() and not words):
            runs.extend(_pieces(words, pack))
            words = []
        else:
            words.append(token)
    return runs


def _tokens(text: str) -> list[str]:
    """Words and marks; an article that lost its vowel is a word of its own: l'acquario."""
    return _TOKEN.findall(_ELISION.sub(r"\1 ", text))


def _pieces(words: Sequence[str], pack: LanguagePack) -> list[str]:
    """A run whole if it is short, else its beginning and end."""
    if pack.script == "han":
        text = "".join(words)
        if len(text) <= 4:
            return [text] if len(text) > 1 else []
        return [text[i : i + size] for size in (2, 3, 4) for i in range(len(text) - size + 1)]
    if not words or (len(words) == 1 and len(words[0]) < 3 and not words[0].isupper()):
        return []
    pieces = [" ".join(words[i : i + size]) for size in (1, 2, 3) for i in range(len(words) - size + 1)]
    return [piece for piece in pieces if len(piece) > 2]


def _distinct(phrases: Sequence[str], pack: LanguagePack) -> list[str]:
    kept: list[str] = []
    seen: set[str] = set()
    for phrase in phrases:
        words = set(stems(phrase, pack)) or {fold(phrase)}
        if not words & seen:
            kept.append(phrase)
            seen |= words
        if len(kept) == 6:
            break
    return kept


def _decisions(turns: Sequence[Turn], pack: LanguagePack) -> tuple[str, ...]:
    """The user's sentences that decide something, newest last."""
    found = []
    for turn in turns:
        if turn.role != "user":
            continue
        for sentence in sentences(turn.content):
            decides = pack.decides.search(fold(sentence))
            if decides and not sentence.rstrip().endswith(("?", "？")):
                found.append(" ".join(sentence[_clause_start(sentence, decides.start()) :].split()).strip(_EDGES))
    return tuple(found[-2:])


def _clause_start(sentence: str, place: int) -> int:
    """Where the clause around a place begins."""
    marks = [sentence.rfind(mark, 0, place) for mark in (",", ";", ":", "，", "；", "：", " - ")]
    return max(*marks, -1) + 1


def _open_questions(turns: Sequence[Turn], pack: LanguagePack) -> tuple[str, ...]:
    """A question nobody answered: at the end of the last turn, or the user's last words."""
    last = turns[-1]
    asked = [sentence for sentence in sentences(last.content) if is_question(sentence, pack)]
    return (" ".join(asked[-1].split()).strip(" \t\n"),) if asked else ()


def _first_words(turns: Sequence[Turn]) -> str:
    text = " ".join(turns[0].content.split())
    return cut_to_tokens(text, 8).strip(_EDGES) or "…"


def render(notes: Notes, limits: Limits) -> tuple[Notes, str]:
    """Notes as one line of at most 50 tokens, empty keys left out; what does not fit is shortened, least first."""
    notes = replace(notes, topic=short(notes.topic, 16) or "…")
    for keep, tokens in ((3, 26), (2, 26), (1, 26), (1, 20), (0, 20), (0, 16), (0, 12), (0, 8), (0, 5)):
        trimmed = replace(
            notes,
            discussed=tuple(short(text, 8) for text in notes.discussed[:keep]),
            decisions=tuple(short(text, tokens) for text in notes.decisions[-1 if tokens < 12 else -2 :]),
            open_questions=tuple(short(text, tokens) for text in notes.open_questions[-1:]),
            outcome=short(notes.outcome, tokens),
        )
        line = _line(trimmed)
        if count_tokens(line) <= limits.summary_tokens:
            return trimmed, line
    bare = Notes(topic=short(notes.topic, 10))
    return bare, _line(bare)


def _line(notes: Notes) -> str:
    parts = [
        ("topic", notes.topic),
        ("discussed", ", ".join(notes.discussed)),
        ("outcome", notes.outcome),
        ("decisions", " / ".join(notes.decisions)),
        ("open_questions", " / ".join(notes.open_questions)),
    ]
    return "; ".join(f"{key}: {value}" for key, value in parts if value)


def short(text: str, tokens: int) -> str:
    """A text of at most so many tokens, cut between words."""
    text = " ".join(text.split())
    if count_tokens(text) <= tokens:
        return text
    cut = cut_to_tokens(text, tokens - 1)
    if " " in cut[len(cut) // 2 :] and re.match(r"\w", text[len(cut) : len(cut) + 1]):
        cut = cut[: cut.rfind(" ")]
    return cut.rstrip(_EDGES) + "…"
