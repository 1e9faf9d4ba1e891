"""Whether two questions are the same (D1): alike in meaning and equal in everything a wrong answer could hang on."""

import re

from memory.language import LanguagePack, fold, words_of
from memory.stores.index import stems


def differs(first: str, second: str, pack: LanguagePack) -> str | None:
    """What tells two questions apart although they look alike; None when nothing does."""
    if _normal(first) == _normal(second):
        return None
    skipped = pack.words["question_words"] | pack.words["filler"] | pack.words["greetings"]
    a, b = ([stem for stem in stems(text, pack) if stem not in skipped] for text in (first, second))
    must_agree = {
        "a number": (_numbers(first), _numbers(second)),
        "a name": (_names(first), _names(second)),
        "a negation": (_count(first, pack, "negations") % 2, _count(second, pack, "negations") % 2),
        "the question word": (_asked(first, pack), _asked(second, pack)),
        "a word": (set(a), set(b)),
        "the order of words": (_order(a), _order(b)),
    }
    return next((what for what, (mine, other) in must_agree.items() if mine != other), None)


def _normal(text: str) -> str:
    return " ".join(words_of(text))


def _numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+(?:[.,:]\d+)*", text))


def _names(text: str) -> set[str]:
    inside = re.findall(r"(?<=[\w,;] )[A-ZÀ-ÖØ-Þ][\w'’-]+", text)
    return {fold(name) for name in inside if name not in ("I", "I'm")}


def _count(text: str, pack: LanguagePack, group: str) -> int:
    if pack.script == "han":
        return sum(fold(text).count(word) for word in pack.words[group] if len(word) == 1)
    return sum(word in pack.words[group] or word == "t" for word in words_of(text))


def _asked(text: str, pack: LanguagePack) -> set[str]:
    if pack.script == "han":
        return {word for word in pack.words["question_words"] if word in fold(text)}
    return {word for word in words_of(text) if word in pack.words["question_words"]}


def _order(words: list[str]) -> list[str]:
    """The order of content words, each once."""
    return list(dict.fromkeys(words))
