"""The thinking aloud of a reasoning model, kept out of its reply: never shown, stored nor sent again."""

import re
from collections.abc import Iterator

_BLOCK = re.compile(r"^[ \t]*<think(?:ing)?>", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_STRAY = re.compile(r"\A.*^[ \t]*</think(?:ing)?>\s*", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_MARKS = ("<think>", "<thinking>")
_LONGEST_END = len("</thinking>")


class WithoutThinking:
    """Takes `<think>...</think>` out of a text that comes in pieces; a mark may be split between two of them.

    A block begins the text or a line of it: words about such marks within a sentence are words like any other.
    """

    def __init__(self) -> None:
        self._held = ""
        self._line = ""  # what was let through of the line at hand
        self._thinking = False
        self._skip_space = True  # before the first word, and after a block

    def __call__(self, piece: str) -> str:
        """What can be shown now."""
        self._held += piece
        return "".join(self._ready())

    def rest(self) -> str:
        """What was held back, when the text is over; thinking that never ended stays out."""
        held, self._held = self._held, ""
        return "" if self._thinking else self._shown(held)

    def _ready(self) -> Iterator[str]:
        while True:
            if self._thinking:
                end = _END.search(self._held)
                if end is None:
                    self._held = self._held[-_LONGEST_END:]
                    return
                self._held = self._held[end.end() :]
                self._thinking, self._skip_space, self._line = False, True, ""
            block = next((found for found in _BLOCK.finditer(self._held) if self._begins_line(found.start())), None)
            if block is None:
                ready = len(self._held) - self._undecided()
                text, self._held = self._held[:ready], self._held[ready:]
                yield self._shown(text)
                return
            yield self._shown(self._held[: block.start()])
            self._held, self._thinking = self._held[block.end() :], True

    def _begins_line(self, place: int) -> bool:
        return place > 0 or not self._line.strip()

    def _undecided(self) -> int:
        """How much of the end may yet turn out to begin a block."""
        start = self._held.rfind("\n") + 1
        last = self._held[start:].lstrip(" \t").lower()
        possible = any(mark.startswith(last) for mark in _MARKS) and self._begins_line(start)
        return len(self._held) - start if possible else 0

    def _shown(self, text: str) -> str:
        if self._skip_space:
            text = text.lstrip()
        if text:
            self._skip_space = False
            self._line = (self._line + text).rpartition("\n")[2]
        return text


def settled(text: str) -> str:
    """The text to keep: some servers swallow the mark that begins the thinking and send only the one that ends it."""
    return _STRAY.sub("", text).strip()
