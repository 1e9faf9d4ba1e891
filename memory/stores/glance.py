"""A quick look at the facts of a file for the shell's completion: read only, unregistered, in one query."""

from contextlib import closing
from pathlib import Path

from memory.limits import Limits
from memory.migrate import connect, translated


def ids_at_a_glance(path: Path, limit: int = 500) -> list[tuple[str, str]]:
    """Ids and texts of the facts of a file, newest first."""
    with translated(path), closing(connect(path, "ro", Limits())) as connection:
        rows = connection.execute(
            "SELECT id, fact FROM facts WHERE status != 'undone' ORDER BY status = 'current' DESC, id DESC LIMIT ?",
            (limit,),
        ).fetchall()
    return [(f"f{number}", fact) for number, fact in rows]
