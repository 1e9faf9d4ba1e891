"""Sessions and turns, as rows."""

from datetime import datetime

from memory.database import Database, Row, Transaction, View
from memory.values import Role, Session, Turn

Reader = Database | View


async def open_session(tx: Transaction, channel: str, chat: str, language: str, at: datetime) -> Session:
    """A new session of a chat; the one before is closed and hands on its language."""
    before = await tx.fetch_one(
        "SELECT language FROM sessions WHERE channel = ? AND chat = ? ORDER BY id DESC LIMIT 1", (channel, chat)
    )
    await tx.execute(
        "UPDATE sessions SET closed_at = ? WHERE channel = ? AND chat = ? AND closed_at IS NULL",
        (at.isoformat(), channel, chat),
    )
    written = await tx.execute(
        "INSERT INTO sessions (channel, chat, language, opened_at) VALUES (?, ?, ?, ?)",
        (channel, chat, before["language"] if before else language, at.isoformat()),
    )
    return Session(id=int(written.lastrowid or 0), channel=channel, chat=chat, opened_at=at)


async def session_language(reader: Reader, session_id: int) -> str | None:
    """The language of the session so far; None when there is no such session."""
    value = await reader.fetch_value("SELECT language FROM sessions WHERE id = ?", (session_id,))
    return None if value is None else str(value)


async def set_session_language(tx: Transaction, session_id: int, language: str) -> None:
    """What short messages fall back to."""
    await tx.execute("UPDATE sessions SET language = ? WHERE id = ?", (language, session_id))


async def insert(
    tx: Transaction, session_id: int, role: Role, speaker: str, content: str, at: datetime, token_count: int
) -> Turn:
    """The next turn of a session."""
    number = int(
        await tx.fetch_value("SELECT coalesce(max(turn_number), 0) + 1 FROM turns WHERE session_id = ?", (session_id,))
    )
    written = await tx.execute(
        "INSERT INTO turns (session_id, turn_number, role, speaker, content, timestamp, token_count) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (session_id, number, role, speaker, content, at.isoformat(), token_count),
    )
    return Turn(
        id=int(written.lastrowid or 0),
        session_id=session_id,
        turn_number=number,
        role=role,
        speaker=speaker,
        content=content,
        timestamp=at,
        token_count=token_count,
    )


async def last(reader: Reader, session_id: int, count: int) -> list[Turn]:
    """The newest turns of a session, oldest of them first."""
    rows = await reader.fetch_all(
        "SELECT * FROM turns WHERE session_id = ? ORDER BY turn_number DESC LIMIT ?", (session_id, count)
    )
    return [_turn(row) for row in reversed(rows)]


async def containing(reader: Reader, text: str) -> list[Turn]:
    """The turns in which a text stands, letter for letter."""
    rows = await reader.fetch_all("SELECT * FROM turns WHERE instr(content, ?) > 0 ORDER BY id", (text,))
    return [_turn(row) for row in rows]


async def with_id(reader: Reader, turn_id: int) -> Turn | None:
    """One turn."""
    row = await reader.fetch_one("SELECT * FROM turns WHERE id = ?", (turn_id,))
    return _turn(row) if row else None


async def rewrite(tx: Transaction, turn_id: int, content: str, token_count: int) -> None:
    """Replaces the words of a turn, when some of them are forgotten."""
    await tx.execute("UPDATE turns SET content = ?, token_count = ? WHERE id = ?", (content, token_count, turn_id))


def _turn(row: Row) -> Turn:
    return Turn(
        id=row["id"],
        session_id=row["session_id"],
        turn_number=row["turn_number"],
        role=row["role"],
        speaker=row["speaker"],
        content=row["content"],
        timestamp=datetime.fromisoformat(row["timestamp"]),
        token_count=row["token_count"],
        semantic_continuity=row["semantic_continuity"],
        topic_shift=bool(row["topic_shift"]),
        summarized_at=datetime.fromisoformat(row["summarized_at"]) if row["summarized_at"] else None,
    )
