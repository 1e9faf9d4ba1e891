"""Whether a file that a process was killed over is sound; what the kill benchmarks share."""

from typing import Any


def is_sound(connection: Any) -> bool:
    """Whether every page, index and reference of an open file is in order."""
    whole = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return whole and not connection.execute("PRAGMA foreign_key_check").fetchall()
