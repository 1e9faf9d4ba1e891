"""Strangers: who was told already that this assistant is not theirs. One id a line, in a file beside the data."""

import os
import threading
from pathlib import Path

MOST_TOLD = 10_000  # after that nobody new is told: silence costs nothing either


class Strangers:
    """Remembers across restarts; each is told once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._told: set[int] | None = None
        self._lock = threading.Lock()  # several may come at the same time

    def first_time(self, number: int) -> bool:
        """Whether somebody, or some group, has to be told; noted before it is."""
        with self._lock:
            return self._noted(number)

    def _noted(self, number: int) -> bool:
        if self._told is None:
            lines = self._file.read_text().split() if self._file.exists() else []
            self._told = {int(line) for line in lines if line.lstrip("-").isdecimal()}
        if number in self._told or len(self._told) >= MOST_TOLD:
            return False
        self._told.add(number)
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{number}\n".encode())
        finally:
            os.close(file)
        return True
