"""Whether a word is another one misspelt: a letter too many or too few, or two letters that changed places.

There is no list of all words here, so it takes care. A letter in place of another is never taken for a slip, nor
anything at the ends of a word: there persons, tenses and genders are told apart, and hermano is not hermana. In shorter
words exactly one of the two must be a word common enough to be one token, in long ones this does not matter.
"""

import re
from collections import Counter

from memory.language import LanguagePack, fold, words_of
from memory.same_question import in_usual_order
from memory.tokens import count_tokens

_SHORTEST = 5  # letters
_LONG = 10  # letters; of this length hardly two words are so alike
_ENDS = 1  # letters at both ends that must agree
_OTHER_WORDS = 2  # that both texts must have in common


def respelt(first: str, second: str, pack: LanguagePack) -> tuple[str, str] | None:
    """Two texts, folded, that differ in one misspelt word, with that word put right; None when that is not it."""
    texts = fold(first), fold(second)
    words = [words_of(in_usual_order(text, pack)) for text in texts]
    one, other = (Counter(found) for found in words)
    mine, yours = list((one - other).elements()), list((other - one).elements())
    if len(mine) != 1 or len(yours) != 1 or len(words[0]) <= _OTHER_WORDS:
        return None
    if _is_name(mine[0], first) or _is_name(yours[0], second):
        return None
    slip = _slip(*sorted((mine[0], yours[0]), key=lambda word: (len(word), word)))
    if slip is None:
        return None
    wrong, right = slip
    mended = [re.sub(rf"(?<!\w){wrong}(?!\w)", right, text) for text in texts]
    return mended[0], mended[1]


def _is_name(word: str, text: str) -> bool:
    """Whether a word is written with a capital letter elsewhere than at the start."""
    place = fold(text).find(word)
    return text[place : place + 1].isupper() and bool(re.search(r"\w[^.?!¿¡]*$", text[:place]))


def _slip(short: str, long: str) -> tuple[str, str] | None:
    """The misspelt word of two and the right one."""
    if not _one_apart(short, long):
        return None
    common = [word for word in (short, long) if count_tokens(f" {word}") == 1]
    if len(common) == 1:
        return (long, short) if common[0] == short else (short, long)
    return (short, long) if not common and len(short) >= _LONG else None


def _one_apart(short: str, long: str) -> bool:
    plain = short.isalpha() and long.isalpha() and len(short) >= _SHORTEST
    if not plain or short[:_ENDS] != long[:_ENDS] or short[-_ENDS:] != long[-_ENDS:]:
        return False
    if len(long) == len(short) + 1:
        return any(long[:place] + long[place + 1 :] == short for place in range(len(long)))
    places = [place for place, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]]
    return (
        len(long) == len(short)
        and len(places) == 2
        and places[1] == places[0] + 1
        and short[places[0]] == long[places[1]]
        and short[places[1]] == long[places[0]]
    )
