"""Whether a sentence says something worth keeping (M1): greetings, praise and echoes are left to be forgotten.

No single sign tells. The worth of a sentence is a logistic combination of what it holds (words of substance, names,
numbers, times, somebody's own doings) and what fillers are made of (reactions, the other's name, "you", few words).
"""

import math
import re
from collections.abc import Mapping, Set
from dataclasses import astuple, dataclass
from functools import cache

from memory.language import LanguagePack, fold, words_of
from memory.stores.index import stems

_NUMBER = re.compile(r"\d")
_NAME = re.compile(r"(?<=[\w,;:’'\"“)] )[A-ZÀ-ÖØ-Þ][\w'’-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What is seen of one sentence; counts are scaled to 0..1."""

    substance: float  # words that are neither function words nor reactions, in sixteens
    rare_words: float  # of these, words in at most one of two hundred stored lines, in fours
    reactions: float  # in fours
    first_person: float
    second_person: float
    number: float
    time: float
    name: float
    asks: float
    repeats: float  # share of its words that the turn before has


# Fitted by logistic regression on dialogues in which it is known what was asked about later (bench/recall.py).
WEIGHTS = Signs(
    substance=1.62,
    rare_words=1.81,
    reactions=-0.49,
    first_person=0.64,
    second_person=-1.09,
    number=1.18,
    time=1.61,
    name=0.65,
    asks=-0.11,
    repeats=0.38,
)
BIAS = -1.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a sentence is judged against."""

    names: Set[str]  # the stems of the speakers' names: to be addressed by name says nothing
    before: Set[str]  # the stems of the turn before
    said: Mapping[str, int]  # in how many stored lines a stem occurs
    lines: int  # how many lines are stored


def worth(sentence: str, around: Around, pack: LanguagePack) -> float:
    """How much a sentence is worth keeping, 0 to 1."""
    signs = signs_of(sentence, around, pack)
    if not signs.substance and not signs.number:  # nothing but greetings, reactions and function words
        return 0.0
    total = sum(weight * sign for weight, sign in zip(astuple(WEIGHTS), astuple(signs), strict=True))
    return 1 / (1 + math.exp(-(total + BIAS)))


def signs_of(sentence: str, around: Around, pack: LanguagePack) -> Signs:
    """The signs of one sentence."""
    words = set(words_of(sentence)) | set(fold(sentence).split())
    content = set(stems(sentence, pack)) - around.names
    substance = set(stems(_without_reactions(sentence, pack), pack)) - around.names - _reaction_stems(pack)
    said = [around.said.get(stem, 0) for stem in substance]
    scale = 2 if pack.script == "han" else 1  # characters and their pairs are about twice as many as words
    return Signs(
        substance=min(len(substance) / scale, 16) / 16,
        rare_words=min(sum(count * 200 <= around.lines for count in said) / scale, 4) / 4,
        reactions=min(len(content - substance), 4) / 4,
        first_person=float(_any(sentence, words, "first_person", pack)),
        second_person=float(_any(sentence, words, "second_person", pack)),
        number=float(bool(_NUMBER.search(sentence))),
        time=float(_has_time(sentence, words, pack)),
        name=float(any(not set(stems(name, pack)) & around.names for name in _NAME.findall(sentence))),
        asks=float(sentence.rstrip(" \t*_\"'”)").endswith(("?", "？"))),
        repeats=len(content & around.before) / max(1, len(content)),
    )


def _any(sentence: str, words: Set[str], key: str, pack: LanguagePack) -> bool:
    wanted = pack.statements[key]
    return any(word in sentence for word in wanted) if pack.script == "han" else bool(words & wanted)


def _has_time(sentence: str, words: Set[str], pack: LanguagePack) -> bool:
    wanted = pack.words["time_words"]
    return any(word in sentence for word in wanted) if pack.script == "han" else bool(words & wanted)


def _without_reactions(sentence: str, pack: LanguagePack) -> str:
    """Chinese has no spaces: what is not worth keeping is cut out before there are words."""
    if pack.script != "han":
        return sentence
    empty = pack.statements["reactions"] | pack.words["greetings"] | pack.words["filler"]
    for phrase in sorted(empty, key=len, reverse=True):
        sentence = sentence.replace(phrase, " ")
    return sentence


@cache
def _reaction_stems(pack: LanguagePack) -> frozenset[str]:
    if pack.script == "han":
        return frozenset()
    empty = pack.statements["reactions"] | pack.words["greetings"] | pack.words["filler"]
    return frozenset(stem for word in empty for stem in stems(word, pack))
