"""Sessions and turns, as rows."""

from datetime import datetime

from memory.database import Database, Row, Transaction, View
from memory.values import Role, Session, Turn

Reader = Database | View
_IDLE = "closed_at IS NULL AND (SELECT max(timestamp) FROM turns WHERE session_id = sessions.id) < ?"


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
    tx: Transaction,
    session_id: int,
    *,
    role: Role,
    speaker: str,
    content: str,
    at: datetime,
    token_count: int,
    semantic_continuity: float | None,
    topic_shift: bool,
) -> Turn:
    """The next turn of a session."""
    number = int(
        await tx.fetch_value("SELECT coalesce(max(turn_number), 0) + 1 FROM turns WHERE session_id = ?", (session_id,))
    )
    written = await tx.execute(
        "INSERT INTO turns (session_id, turn_number, role, speaker, content, timestamp, token_count, "
        "semantic_continuity, topic_shift) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session_id,
            number,
            role,
            speaker,
            content,
            at.isoformat(),
            token_count,
            semantic_continuity,
            int(topic_shift),
        ),
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
        semantic_continuity=semantic_continuity,
        topic_shift=topic_shift,
    )


async def last(reader: Reader, session_id: int, count: int) -> list[Turn]:
    """The newest turns of a session, oldest of them first."""
    rows = await reader.fetch_all(
        "SELECT * FROM turns WHERE session_id = ? ORDER BY turn_number DESC LIMIT ?", (session_id, count)
    )
    return [_turn(row) for row in reversed(rows)]


async def window(reader: Reader, session_id: int) -> list[Turn]:
    """The turns of a session that are still sent as they were said."""
    rows = await reader.fetch_all(
        "SELECT * FROM turns WHERE session_id = ? AND left_window = 0 ORDER BY turn_number", (session_id,)
    )
    return [_turn(row) for row in rows]


async def open_window(reader: Reader, channel: str, chat: str) -> tuple[int, list[Turn]] | None:
    """The open session of a chat and the turns in its window."""
    session = await reader.fetch_value(
        "SELECT id FROM sessions WHERE channel = ? AND chat = ? AND closed_at IS NULL", (channel, chat)
    )
    return None if session is None else (int(session), await window(reader, int(session)))


async def idle_sessions(reader: Reader, before: datetime) -> bool:
    """Whether there are open sessions in which nothing was said since a moment."""
    found = await reader.fetch_value(f"SELECT 1 FROM sessions WHERE {_IDLE} LIMIT 1", (before.isoformat(),))
    return found is not None


async def close_idle(tx: Transaction, before: datetime, at: datetime) -> int:
    """Closes the sessions in which nothing was said since a moment; those without a turn stay open."""
    closed = await tx.execute(f"UPDATE sessions SET closed_at = ? WHERE {_IDLE}", (at.isoformat(), before.isoformat()))
    return closed.rowcount


async def reopen(tx: Transaction, session_id: int) -> None:
    """Somebody goes on in a session that was closed for its silence; not where a newer one took its place."""
    await tx.execute(
        "UPDATE sessions SET closed_at = NULL WHERE id = ? AND closed_at IS NOT NULL AND NOT EXISTS (SELECT 1 "
        "FROM sessions o WHERE o.channel = sessions.channel AND o.chat = sessions.chat AND o.id > sessions.id)",
        (session_id,),
    )


async def closed_windows(reader: Reader) -> list[tuple[int, list[Turn]]]:
    """Closed sessions with turns still in their window: a reply may come in after its session was closed."""
    rows = await reader.fetch_all(  # turns leave oldest first: the newest one tells
        "SELECT s.id FROM sessions s WHERE s.closed_at IS NOT NULL AND "
        "(SELECT left_window FROM turns WHERE session_id = s.id ORDER BY turn_number DESC LIMIT 1) = 0"
    )
    return [(row["id"], await window(reader, row["id"])) for row in rows]


async def session(reader: Reader, session_id: int) -> Session | None:
    """One session."""
    row = await reader.fetch_one("SELECT * FROM sessions WHERE id = ?", (session_id,))
    if row is None:
        return None
    opened = datetime.fromisoformat(row["opened_at"])
    return Session(id=row["id"], channel=row["channel"], chat=row["chat"], opened_at=opened)


async def between(reader: Reader, session_id: int, first: int, last: int) -> list[Turn]:
    """The turns of a segment."""
    rows = await reader.fetch_all(
        "SELECT * FROM turns WHERE session_id = ? AND id BETWEEN ? AND ? ORDER BY turn_number",
        (session_id, first, last),
    )
    return [_turn(row) for row in rows]


async def beside(reader: Reader, session_id: int, first: int, last: int) -> tuple[str, str]:
    """The words of the turn before a segment and of the one after it, as far as they are there."""
    before = await reader.fetch_value(
        "SELECT content FROM turns WHERE session_id = ? AND id < ? ORDER BY id DESC LIMIT 1", (session_id, first)
    )
    after = await reader.fetch_value(
        "SELECT content FROM turns WHERE session_id = ? AND id > ? ORDER BY id LIMIT 1", (session_id, last)
    )
    return before or "", after or ""


async def with_content(reader: Reader) -> list[Turn]:
    """All turns whose words are still there."""
    rows = await reader.fetch_all("SELECT * FROM turns WHERE content != '' ORDER BY id")
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
