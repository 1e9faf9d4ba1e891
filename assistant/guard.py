"""Keeps the static prompt out of replies: whatever a text in the request told the model, it is not recited.

Memory, documents and forwarded messages are data, and the prompt says so; a model that obeys them all the same is
stopped here, after the fact and without its help. Words count, not their case, marks or line breaks.
"""

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import lru_cache

from assistant.reply import Reply

RUN = 8  # words of the prompt in a row are a recital
HELD = 3  # so many may be the beginning of one, and wait for what follows
_WORD = re.compile(r"\w+")


@lru_cache(maxsize=4)
def _runs(prompt: str) -> frozenset[tuple[str, ...]]:
    words = _words(prompt)
    return frozenset(
        tuple(words[start : start + length])
        for length in range(HELD, RUN + 1)
        for start in range(len(words) - length + 1)
    )


def _words(text: str) -> list[str]:
    return [match[0].casefold() for match in _WORD.finditer(text)]


class Guard:
    """Lets a text through that comes in pieces, until it recites the prompt."""

    def __init__(self, prompt: str) -> None:
        self._runs = _runs(prompt)
        self._tail = ""  # the last words of the text, of which the first `_out` characters were let through
        self._out = 0
        self.tripped = False

    def __call__(self, piece: str) -> str:
        """What can be shown now; nothing once it tripped."""
        self._tail += piece
        matches = list(_WORD.finditer(self._tail))
        if matches and matches[-1].end() == len(self._tail):  # it may go on in the next piece, and counts then
            matches.pop()
        return self._advance(matches)

    def rest(self) -> str:
        """What was held back, when the text is over."""
        shown = self._advance(list(_WORD.finditer(self._tail)))
        return shown if self.tripped else shown + self._tail[self._out :]

    def _advance(self, matches: list[re.Match[str]]) -> str:
        if self.tripped:
            return ""
        words = [match[0].casefold() for match in matches]
        for start in range(len(words) - RUN + 1):
            if tuple(words[start : start + RUN]) in self._runs:
                self.tripped = True
                return self._tail[self._out : matches[start].start()]
        lengths = range(min(RUN - 1, len(words)), HELD - 1, -1)
        waiting = next((length for length in lengths if tuple(words[-length:]) in self._runs), 0)
        end = max(matches[-waiting].start() if waiting else len(self._tail), self._out)
        shown, self._out = self._tail[self._out : end], end
        settled = min(matches[-RUN].start(), end) if len(matches) > RUN else 0
        self._tail, self._out = self._tail[settled:], self._out - settled
        return shown


async def guarded(
    stream: AsyncIterator[str | Reply], prompt: str, *, sentence: str, model: str
) -> AsyncIterator[str | Reply]:
    """A model's reply; `sentence` in place of what recites the prompt, and of such a reply no more is asked for."""
    guard = Guard(prompt)
    shown = ""
    async with aclosing(stream) as parts:  # type: ignore[type-var]
        async for part in parts:
            ready = guard.rest() if isinstance(part, Reply) else guard(part)
            shown += ready
            if ready:
                yield ready
            if guard.tripped:
                break
            if isinstance(part, Reply):
                yield part
    if guard.tripped:
        refusal = f"\n\n{sentence}" if shown.strip() else sentence
        yield refusal
        yield Reply(text=(shown + refusal).strip(), finish_reason="content_filter", model=model)
