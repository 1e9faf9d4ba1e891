"""What went wrong while messages were answered (L2), as rows; only the newest are kept."""

from datetime import datetime

from memory.database import Database, Transaction, View
from memory.values import Problem

_KEPT = 1000


async def insert(tx: Transaction, session_id: int, problem: Problem) -> None:
    """Adds one."""
    written = await tx.execute(
        "INSERT INTO problems (at, session_id, source, text) VALUES (?, ?, ?, ?)",
        (problem.at.isoformat(), session_id, problem.source, problem.text),
    )
    await tx.execute("DELETE FROM problems WHERE id <= ?", (written.lastrowid - _KEPT,))


async def last(reader: Database | View, session_id: int, since: datetime) -> Problem | None:
    """The newest of a session since then."""
    row = await reader.fetch_one(
        "SELECT * FROM problems WHERE session_id = ? AND at >= ? ORDER BY id DESC LIMIT 1",
        (session_id, since.isoformat()),
    )
    return Problem(at=datetime.fromisoformat(row["at"]), source=row["source"], text=row["text"]) if row else None
