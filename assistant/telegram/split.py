"""Splits what is too long for one message: between paragraphs if it can be, never inside an emoji or an entity that
fits into a message of its own; code that does not is code on both sides of the cut."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from assistant.telegram.markdown import MOST_ENTITIES, Rich, Span

MOST_UNITS = 4096  # of one message, in UTF-16 units
_LEAST_SHARE = 0.25  # a cut that leaves less than this of a message is passed over for a less handsome one
_MISSED = {"text_link": 0, "pre": 1, "code": 2, "blockquote": 3}
_JOINER = "\u200d"


def split(rich: Rich, most: int = MOST_UNITS) -> list[Rich]:
    """The messages a text becomes; only white space at the cuts is left out."""
    text, offsets = rich.text, _offsets(rich.text)
    messages: list[Rich] = []
    start = _skip_space(text, 0, len(text))
    while start < len(text):
        end = _end(rich, offsets, start, most)
        while end > start and text[end - 1].isspace():
            end -= 1
        if end > start:
            spans = _clipped(rich.spans, offsets[start], offsets[end])
            messages.append(Rich(text=text[start:end], spans=tuple(_most_telling(spans))))
        start = _next_start(rich.spans, text, offsets, end)
    return messages


def _end(rich: Rich, offsets: Sequence[int], start: int, most: int) -> int:
    """Where the message that begins at `start` ends."""
    text = rich.text
    limit = start
    while limit < len(text) and offsets[limit + 1] - offsets[start] <= most:
        limit += 1
    spans = [span for span in rich.spans if span.offset < offsets[limit] and span.end > offsets[start]]
    links = [span.offset for span in spans if span.type == "text_link"]
    if len(links) > MOST_ENTITIES:
        return bisect_left(offsets, links[MOST_ENTITIES])
    if limit == len(text):
        return limit
    least = start + max(1, int((limit - start) * _LEAST_SHARE))
    for pattern in (r"\n\s*\n", r"\n", r"(?<=[.!?。！？…])\s+|(?<=[。！？])", r"\s"):
        cuts = [cut.start() for cut in re.finditer(pattern, text[least:limit])]
        for cut in reversed(cuts):
            if not _inside(spans, offsets[least + cut], most, within_code=pattern == r"\n"):
                return least + cut
    places = range(limit, start, -1)
    whole = (cut for cut in places if _boundary(text, cut) and not _inside(spans, offsets[cut], most))
    seen = (cut for cut in places if _boundary(text, cut))
    return next(whole, None) or next(seen, limit)


def _inside(spans: Sequence[Span], offset: int, most: int, *, within_code: bool = False) -> bool:
    """Whether a cut breaks an entity that would fit into a message; long code may be cut between lines."""
    for span in spans:
        if span.offset < offset < span.end:
            if span.length <= most:
                return True
            if span.type == "pre" and not within_code:
                return True
    return False


def _next_start(spans: Sequence[Span], text: str, offsets: Sequence[int], end: int) -> int:
    """The next character to be shown; in the middle of code its indentation belongs to it."""
    if end < len(text) and any(span.type == "pre" and span.offset < offsets[end] < span.end for span in spans):
        after = _skip_space(text, end, len(text))
        line = text.rfind("\n", end, after)
        return line + 1 if line >= 0 else after
    return _skip_space(text, end, len(text))


def _skip_space(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _clipped(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    found = []
    for span in spans:
        first, last = max(span.offset, start), min(span.end, end)
        if first < last:
            found.append(replace(span, offset=first - start, length=last - first))
    return found


def _most_telling(spans: Sequence[Span]) -> list[Span]:
    """As many as a message can have: styles are missed least, links most."""
    if len(spans) <= MOST_ENTITIES:
        return list(spans)
    ranked = sorted(enumerate(spans), key=lambda one: (_MISSED.get(one[1].type, len(_MISSED)), one[0]))
    return [span for _, span in sorted(ranked[:MOST_ENTITIES], key=lambda one: one[0])]


def _offsets(text: str) -> list[int]:
    offsets, whole = [0], 0
    for char in text:
        whole += 2 if ord(char) > 0xFFFF else 1
        offsets.append(whole)
    return offsets


def _boundary(text: str, place: int) -> bool:
    """Whether what is seen as one character ends here."""
    before, after = text[place - 1], text[place]
    if _JOINER in (before, after) or unicodedata.category(after)[0] == "M" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return False
    if "\U000e0020" <= after <= "\U000e007f":  # the rest of a flag
        return False
    if _flag(before) and _flag(after):  # two letters make a flag
        run = place - len(text[:place].rstrip("".join(map(chr, range(0x1F1E6, 0x1F200)))))
        return run % 2 == 0
    return not (before == "\r" and after == "\n")


def _flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
