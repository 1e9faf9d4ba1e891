"""A learned second opinion beside the rules (F2): how much a sentence sounds like a lasting fact, and about what.

Linear models over hashed words, their endings and the word lists of the language pack; `bench/opinion.py` trains
them on the labelled messages of the repository and writes `opinion.npz`. Deterministic, no network, well under a
millisecond a sentence. A language without weights has no opinion: then the rules alone decide.
"""

import math
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from memory.language import LanguagePack, fold

BUCKETS = 1 << 15  # of the hashed features
TOPIC_BUCKETS = 1 << 12
TOPIC_SCALE = 24  # their weights are stored as small whole numbers
SINGLE = frozenset(
    {"home", "job", "studies", "partner", "marital", "diet", "religion", "age", "birthday", "name", "form of address"}
    | {"phone number", "smoking", "answer language", "units"}
)  # of these one has one at a time
_TOKEN = re.compile(r"[\u3400-\u9fff]|\d+|[^\W\d_]+(?:'[^\W\d_]+)?|[?!.,;:。，？！：；…\"“”>/()=]")
_LETTERS = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"(?<=[a-z,] )[A-ZÁÉÍÓÚ][a-z]+")
_MOST_TOKENS, _NEIGHBOUR_TOKENS = 60, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A sentence and what stands around it in its message."""

    text: str
    before: str = ""
    after: str = ""
    place: int = 0
    sentences: int = 1
    blocked: str = ""  # by which block of the pack: declaration or clause


def score(heard: Heard, pack: LanguagePack) -> float | None:
    """How likely a sentence states a lasting fact, 0 to 1; None when the language has no weights."""
    weights = _weights().get(f"{pack.code}.fact")
    if weights is None:
        return None
    return chance(float(weights[0]) + sum(float(weights[1 + place]) * value for place, value in hashed(heard, pack)))


def topics(text: str, pack: LanguagePack) -> dict[str, float]:
    """What a fact is about, by attribute, and whether it tells a change: probabilities; empty without weights."""
    import numpy as np

    weights = _weights().get(f"{pack.code}.topic")
    if weights is None:
        return {}
    pairs = list(hashed_topic(text, pack))
    places = np.array([0, *(1 + place for place, _ in pairs)])
    values = np.array([1.0, *(value for _, value in pairs)], dtype=np.float32)
    scores = (weights[:, places].astype(np.float32) / TOPIC_SCALE) @ values
    odds = np.exp(scores[:-1] - scores[:-1].max())
    names = [sys.intern(str(name)) for name in _weights()["topics"]]  # results are held by the hundred
    change = chance(float(scores[-1]))
    return {**dict(zip(names, (odds / odds.sum()).tolist(), strict=True)), CHANGE: change}


CHANGE = "change"


def chance(odds: float) -> float:
    """Log odds as a chance from 0 to 1."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))


def hashed(heard: Heard, pack: LanguagePack) -> Iterator[tuple[int, float]]:
    """The features of a sentence as places in the table of weights."""
    return (_place(name, value, BUCKETS) for name, value in features(heard, pack).items())


def hashed_topic(text: str, pack: LanguagePack) -> Iterator[tuple[int, float]]:
    """The same for what a text is about: words, how they begin, and the lists they are in."""
    longest = 2 if pack.script == "han" else 1
    for name, value in features(Heard(text=text), pack).items():
        kind, _, rest = name.partition(":")
        if kind in ("begins", "list") or (kind == "w" and rest.count(" ") < longest):
            yield _place(name, value, TOPIC_BUCKETS)


def _place(name: str, value: float, buckets: int) -> tuple[int, float]:
    """A bucket, and a sign so that collisions cancel out."""
    code = zlib.crc32(name.encode())
    return code % buckets, value if code & 0x4000_0000 else -value


def features(heard: Heard, pack: LanguagePack) -> dict[str, float]:
    """What the models look at, by name."""
    folded = fold(heard.text)
    tokens = _tokens(folded)[:_MOST_TOKENS]
    found = _word_features(tokens, pack.script == "han")
    length = sum(value * value for value in found.values()) ** 0.5
    found = {name: 4.0 * value / length for name, value in found.items()}
    for side, text in (("before", heard.before), ("after", heard.after)):
        for token in _tokens(fold(text))[:_NEIGHBOUR_TOKENS]:
            found[f"{side}:{token}"] = 0.3
    if heard.place == 0:
        found["first"] = 0.5
    found[f"of:{min(heard.sentences, 4)}"] = 0.5
    if heard.blocked:
        found[f"blocked:{heard.blocked}"] = 1.0
    if pack.script != "han":
        found |= _accents(heard.text.lower())
    for name, pattern in _lists(pack):
        match = pattern.search(folded)
        if match:
            found[f"list:{name}"] = 0.6
            if match.start() < 12:
                found[f"list first:{name}"] = 0.4
    found["names"] = 0.3 * min(len(_NAME.findall(heard.text)), 3)
    found["length"] = 0.5 * min(len(folded) / 100, 2)
    found["number"] = 0.4 * bool(re.search(r"\d", folded))
    return found


def _tokens(folded: str) -> list[str]:
    return ["#" if token.isdigit() else token for token in _TOKEN.findall(folded[:2_000])]


def _word_features(tokens: list[str], han: bool) -> dict[str, float]:
    """Runs of words, how the sentence begins, how words begin and end."""
    found: dict[str, float] = {"^": 1.0}
    framed = ["^", *tokens, "$"]
    for size in range(1, 5 if han else 4):
        for start in range(len(framed) - size + 1):
            found["w:" + " ".join(framed[start : start + size])] = 1.0
    for size in range(1, 5):
        found["^:" + " ".join(tokens[:size])] = 1.0
    if not han:
        for word in {token for token in tokens if len(token) > 4}:
            found[f"ends:{word[-3:]}"] = found[f"ends:{word[-4:]}"] = 0.5
            found[f"begins:{word[:4]}"] = found[f"begins:{word[:5]}"] = 0.5
    return found


def _accents(lower: str) -> dict[str, float]:
    """What folding takes away: "trabajo" and "trabajó" are two tenses."""
    found: dict[str, float] = {}
    words = _LETTERS.findall(lower)
    for word in words:
        if not word.isascii():
            found[f"u:{word}"] = found[f"u ends:{word[-2:]}"] = found[f"u ends:{word[-3:]}"] = 0.5
    for place, word in enumerate(words[:3]):
        found[f"u{place}:{word[-1:]}"] = found[f"u{place}:{word[-2:]}"] = 0.4
    return found


@cache
def _lists(pack: LanguagePack) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The pack's named pieces of patterns, as far as they are lists of words."""
    found = []
    for name, text in pack.macros.items():
        pattern = pack.compile_words(text)
        if not pattern.search("") and not pattern.match(" zzz zzz"):
            found.append((name, pattern))
    return tuple(found)


def stored(name: str) -> Any:
    """A table of weights by name; None where there is none."""
    return _weights().get(name)


@cache
def _weights() -> dict[str, Any]:
    import numpy as np

    file = resources.files("memory").joinpath("opinion.npz")
    if not file.is_file():
        return {}
    with file.open("rb") as stream, np.load(stream) as stored:
        return {name: stored[name] for name in stored.files}
