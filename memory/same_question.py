"""Whether two questions are the same (D1): alike in meaning and equal in everything a wrong answer could hang on.

The ways to ask one thing are brought to one form first, by the [same] section of a language pack: courtesies go,
frames ("how can I", "what is the best way to") become one name, synonyms one word, and light words do not count.
What is left must agree: numbers, quotes, negation, question words, persons, moods and tenses, the words, their order.
"""

import re
from dataclasses import dataclass

from memory.language import LanguagePack, fold, words_of
from memory.stores.index import stems

_QUOTED = re.compile(r"[\"“«「『](.{1,80}?)[\"”»」』]")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_STRESSED = re.compile(r"\b\w*[áéíóúàèìòù]\b")
_UNORDERED = {"difference", "thing"}  # there the words may come in any order, unless something is counted
_JUST_WHAT = {"choice", "thing"}  # these tell how the words may be put; what is asked is what
_PLACE = "place "  # groups of which two questions must not have different ones
_OWN = {"first", "several"}
_OWN_DOING = "howto"  # there it does not matter whose it is: to improve English, to improve my English
_NAME_STRESSED = re.compile(r"(?<=\w )[^\W\d_a-z]\w*[áéíóúàèìòù]\b")  # who writes Bogota means Bogotá
_HAN_DIGITS = "零一二三四五六七八九"
_WHOLE_NUMBER = re.compile(
    r"(?<![\w.,:/%-])\d{1,3}(?![a-z\d.:/%-]|,\d)|(?<=[\u4e00-\u9fff])\d{1,3}(?![a-z\d.:/%-]|,\d)"
)
_MOST_COURTESIES = 4  # hi, sorry to bother you, can you please tell me ...
_SIGNS = re.compile(r"[+#]+(?!\w)|%|[$€£¥]")  # C++ is not C


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A question, brought to the form in which it can be compared."""

    text: str  # all of it, normalised
    numbers: tuple[str, ...]
    quotes: frozenset[str]
    stressed: tuple[str, ...]  # words that end in an accent, where that tells who did it: llego, llegó
    negations: int
    asked: frozenset[str]  # question words and frames
    groups: frozenset[str]  # persons, moods, tenses
    words: tuple[str, ...]  # of the content, in their order, each once


def form(text: str, pack: LanguagePack) -> Form:
    """What a question asks, whatever way it is put."""
    folded = _in_digits(fold(text), pack)
    quotes = frozenset(" ".join(part.split()) for part in _QUOTED.findall(folded))
    rest, frames = _reframed(folded, pack)
    found = _words(rest, pack)
    words = tuple(found if pack.script == "han" else dict.fromkeys(found))
    return Form(
        text=" ".join([*sorted(frames), *words_of(rest), *_SIGNS.findall(rest)]),
        numbers=tuple(sorted([*_NUMBER.findall(folded), *_SIGNS.findall(folded)])),
        quotes=quotes,
        stressed=_stressed(text, words, pack),
        negations=_count(rest, pack),
        asked=frozenset(frames - _JUST_WHAT | ({"what"} if frames & _JUST_WHAT else set())) | _found(rest, pack),
        groups=_groups(rest, frames, pack),
        words=tuple(sorted(words)) if _UNORDERED & frames and not _NUMBER.search(folded) else words,
    )


def differs(first: Form, second: Form) -> str | None:
    """What tells two questions apart although they look alike; None when nothing does."""
    if (first.text, first.numbers, first.stressed) == (second.text, second.numbers, second.stressed):
        return None
    must_agree = {
        "a number": (first.numbers, second.numbers),
        "a quote": (first.quotes, second.quotes) if first.quotes and second.quotes else ((), ()),
        "an accent": (first.stressed, second.stressed),
        "a negation": (first.negations, second.negations),
        "the question word": (first.asked, second.asked),
        "a person, mood or tense": (_firm(first.groups), _firm(second.groups)),
        "a place": _places(first.groups, second.groups),
        "a word": (frozenset(first.words), frozenset(second.words)),
        "the order of words": (first.words, second.words),
    }
    return next((what for what, (mine, other) in must_agree.items() if mine != other), None)


def _firm(groups: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in groups if not name.startswith(_PLACE))


def _places(first: frozenset[str], second: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """In the fridge is not on the fridge; but where one says no such word, nothing speaks against it."""
    places = (first - _firm(first), second - _firm(second))
    return places if all(places) else (frozenset(), frozenset())


def _reframed(folded: str, pack: LanguagePack) -> tuple[str, set[str]]:
    """A question without its courtesies and frames, in one choice of words; and the names of the frames."""
    rest = in_usual_order(folded, pack)
    for name, pattern in pack.same_synonyms.items():
        rest = pattern.sub(name, rest)
    found = set()
    for name, pattern in pack.same_frames.items():
        rest, times = pattern.subn(lambda match: " ".join(["", *(part for part in match.groups() if part), ""]), rest)
        if times:
            found.add(name)
    rest = pack.same_light.sub("" if pack.script == "han" else " ", rest)
    return pack.same_joined.sub(_sorted, " ".join(rest.split())), found


def in_usual_order(folded: str, pack: LanguagePack) -> str:
    """Without courtesies and marks, and with what was put before the question behind it."""
    rest = _without_courtesies(re.sub(r"[¿?？!¡！.。;；:：\"“”«»]+", " ", folded), pack)
    if found := pack.same_fronted.search(rest):
        parts = [part.strip(" ,") for part in found.groups() if part]
        rest = " ".join([*parts[:-2], *reversed(parts[-2:])])
    return _without_courtesies(re.sub(r"[,，]+", " ", rest), pack)


def _without_courtesies(text: str, pack: LanguagePack) -> str:
    """People put several of them before a question: hi, sorry to bother you, can you tell me."""
    for _ in range(_MOST_COURTESIES):
        rest = " ".join(pack.same_courtesies.sub(" ", text).strip(" ,，").split())
        if rest == text:
            break
        text = rest
    return text.replace(" ", "") if pack.script == "han" and not re.search("[a-z]", text) else text


def _in_digits(folded: str, pack: LanguagePack) -> str:
    """One way to write a small number: 5 for five, and 五 for 5 where words are not set apart."""
    if pack.script == "han":
        return _WHOLE_NUMBER.sub(lambda match: _in_han(int(match[0])), folded)
    return re.sub(r"[^\W\d_]+", lambda match: pack.same_numbers.get(match[0], match[0]), folded)


def _in_han(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    tens, ones = divmod(rest, 10)
    if number < 10:
        return _HAN_DIGITS[number]
    written = f"{_HAN_DIGITS[hundreds]}百" if hundreds else ""
    if tens:
        written += f"{_HAN_DIGITS[tens] if hundreds or tens > 1 else ''}十"
    elif ones:
        written += "零"
    return written + (_HAN_DIGITS[ones] if ones else "")


def _stressed(text: str, words: tuple[str, ...], pack: LanguagePack) -> tuple[str, ...]:
    if not pack.same_exact:
        return ()
    telling = pack.same_unstressed.sub(" ", _NAME_STRESSED.sub(" ", text).lower())
    return tuple(sorted(word for word in _STRESSED.findall(telling) if fold(word) in words))


def _sorted(match: re.Match[str]) -> str:
    first, last = sorted((match[1], match[3]))
    return f"{first} {match[2]} {last}"


def _words(rest: str, pack: LanguagePack) -> list[str]:
    if pack.script == "han":  # words are not set apart: every character counts
        return words_of(rest)
    skipped = pack.words["question_words"]
    if pack.same_exact:
        skipped |= pack.words["determiners"] | pack.statements["articles"]
        return [word for word in words_of(rest) if word not in skipped]
    return stems(rest, pack, skipped)


def _groups(rest: str, frames: set[str], pack: LanguagePack) -> frozenset[str]:
    found = {name for name, pattern in pack.same_groups.items() if pattern.search(rest)}
    return frozenset(found - _OWN if _OWN_DOING in frames else found)


def _count(rest: str, pack: LanguagePack) -> int:
    if pack.script == "han":
        return sum(rest.count(word) for word in pack.words["negations"] if len(word) == 1)
    return sum(word in pack.words["negations"] or word == "t" for word in words_of(rest))


def _found(rest: str, pack: LanguagePack) -> frozenset[str]:
    wanted = pack.words["question_words"]
    if pack.script == "han":
        return frozenset(word for word in wanted if word in rest)
    return frozenset(word for word in words_of(rest) if word in wanted)
