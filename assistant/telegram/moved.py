"""Groups that moved: one that becomes a supergroup gets another id, and keeps its memory.

Old and new id, one move a line, in a file beside the data: the list in the settings still has the old one.
"""

import os
from collections.abc import Mapping
from pathlib import Path


class Moved:
    """Remembers across restarts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        pairs = [line.split() for line in lines]
        self._to = {int(pair[0]): int(pair[1]) for pair in pairs if len(pair) == 2 and all(map(_is_group, pair))}

    def note(self, old: int, new: int) -> bool:
        """A group is another one from now on; whether that is news."""
        if old >= 0 or new >= 0 or self.now(new) == old or self._to.get(old) == new:
            return False
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{old} {new}\n".encode())
        finally:
            os.close(file)
        self._to[old] = new
        return True

    def now(self, chat: int) -> int:
        """Where a chat is now."""
        return self._to.get(chat, chat)

    def people(self, listed: Mapping[int, str]) -> dict[int, str]:
        """The list with the new ids of groups on it; what is listed itself stays as it is."""
        return {**{self.now(number): owner for number, owner in listed.items()}, **listed}


def _is_group(text: str) -> bool:
    return text.startswith("-") and text[1:].isdecimal()
