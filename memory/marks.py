"""The marks that fence memory in a request, and texts that imitate them, other roles or control sequences."""

import re

OPEN, CLOSE = "<memory>", "</memory>"

# Quantifiers are possessive or bounded: a megabyte of newlines or of half marks is a message like any other.
_MARKERS = re.compile(
    r"<\s*+/?\s*+memory\b|<[|｜][^|｜<>\n]{0,60}[|｜]>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|"
    r"</?(?:system|assistant|user|tool|im_start|im_end|think)\b",
    re.IGNORECASE,
)
_ROLE_LINE = re.compile(
    r"^([^\S\n]*+#{0,6}+[^\S\n]*+)(system|assistant|user|human|developer|instruction)(?=:)",
    re.IGNORECASE | re.MULTILINE,
)
_CONTROL = re.compile(  # with what begins a line, and what a model reads and a person does not see
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
)


def neutralise(text: str) -> str:
    """A text in which nothing can pass for our marks, another role or a control sequence; twice is as once."""
    return _ROLE_LINE.sub(r"\1\2 ", _without_markers(text))


def _without_markers(text: str) -> str:
    text = _CONTROL.sub(" ", text.encode("utf-8", "replace").decode())
    return _MARKERS.sub(lambda match: match[0].translate(_LOOK_ALIKES), text)


_LOOK_ALIKES = str.maketrans("<>[]|｜", "‹›⟦⟧¦¦")


def one_line(text: str) -> str:
    """Memory is shown a line an item: no item can begin a line of its own."""
    return " ".join(_without_markers(text).split())
