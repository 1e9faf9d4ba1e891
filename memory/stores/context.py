"""Segments waiting for compression, summaries, statements and what requests used, as rows."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.database import Database, Row, Transaction, View
from memory.values import Statement, Summary, Turn

Reader = Database | View


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Turns that left the window together and wait to be compressed."""

    id: int
    session_id: int
    channel: str
    chat: str
    language: str
    first_turn: int
    last_turn: int


async def queue(tx: Transaction, session_id: int, segments: Iterable[Sequence[Turn]], at: datetime) -> None:
    """Turns leave the window; their compression is owed from now on."""
    for segment in segments:
        first, last = segment[0].id, segment[-1].id
        await tx.execute(
            "INSERT INTO segments (session_id, first_turn, last_turn, queued_at) VALUES (?, ?, ?, ?)",
            (session_id, first, last, at.isoformat()),
        )
        await tx.execute(
            "UPDATE turns SET left_window = 1 WHERE session_id = ? AND id BETWEEN ? AND ?", (session_id, first, last)
        )


async def next_segment(reader: Reader) -> Segment | None:
    """The oldest segment that waits."""
    row = await reader.fetch_one(
        "SELECT g.*, s.channel, s.chat, s.language "
        "FROM segments g JOIN sessions s ON s.id = g.session_id ORDER BY g.id LIMIT 1"
    )
    if row is None:
        return None
    names = ("id", "session_id", "channel", "chat", "language", "first_turn", "last_turn")
    return Segment(**{name: row[name] for name in names})


async def finish(tx: Transaction, segment: Segment, at: datetime) -> None:
    """The words of a segment are gone; what stays are its statements and its summary."""
    await tx.execute(
        "UPDATE turns SET content = '', summarized_at = ? WHERE session_id = ? AND id BETWEEN ? AND ?",
        (at.isoformat(), segment.session_id, segment.first_turn, segment.last_turn),
    )
    await tx.execute("DELETE FROM segments WHERE id = ?", (segment.id,))


async def is_waiting(tx: Transaction, segment: Segment) -> bool:
    """Whether nobody else has compressed it meanwhile."""
    return await tx.fetch_value("SELECT 1 FROM segments WHERE id = ?", (segment.id,)) is not None


# -- summaries


async def insert_summary(tx: Transaction, segment: Segment, summary: Summary, signals: str = "{}") -> Summary:
    """Written once, never changed; the signals tell how the segment went."""
    lists = [
        json.dumps(part, ensure_ascii=False) for part in (summary.discussed, summary.decisions, summary.open_questions)
    ]
    written = await tx.execute(
        "INSERT INTO summaries (session_id, channel, chat, first_turn, last_turn, topic, discussed, outcome, "
        "decisions, open_questions, rendered, token_count, language, at, signals) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            segment.session_id,
            segment.channel,
            segment.chat,
            segment.first_turn,
            segment.last_turn,
            summary.topic,
            lists[0],
            summary.outcome,
            lists[1],
            lists[2],
            summary.rendered,
            summary.token_count,
            summary.language,
            summary.at.isoformat(),
            signals,
        ),
    )
    row = await tx.fetch_one("SELECT * FROM summaries WHERE id = ?", (written.lastrowid,))
    assert row is not None
    return _summary(row)


async def slots(reader: Reader, channel: str, chat: str, count: int) -> list[Summary]:
    """The newest summaries of a chat, oldest first."""
    rows = await reader.fetch_all(
        "SELECT * FROM summaries WHERE channel = ? AND chat = ? ORDER BY id DESC LIMIT ?", (channel, chat, count)
    )
    return [_summary(row) for row in reversed(rows)]


async def summaries_with_ids(reader: Reader, ids: Sequence[str]) -> list[Summary]:
    """Summaries by id ("m3")."""
    numbers = [int(ref[1:]) for ref in ids]
    rows = await reader.fetch_all(f"SELECT * FROM summaries WHERE id IN ({', '.join('?' * len(numbers))})", numbers)
    return [_summary(row) for row in rows]


# -- statements


async def insert_statement(tx: Transaction, statement: Statement) -> Statement:
    """A new statement."""
    written = await tx.execute(
        "INSERT INTO statements (kind, text, speaker, session_id, turn_id, language, entities, at, gist, "
        "read_on) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(number), 0) FROM days))",
        (
            statement.kind,
            statement.text,
            statement.speaker,
            statement.session_id,
            statement.turn_id,
            statement.language,
            json.dumps(statement.entities, ensure_ascii=False),
            statement.at.isoformat(),
            statement.gist,
        ),
    )
    row = await tx.fetch_one("SELECT * FROM statements WHERE id = ?", (written.lastrowid,))
    assert row is not None
    return _statement(row)


async def same_statement(tx: Transaction, statement: Statement) -> Statement | None:
    """The stored statement that says the same, if there is one (M3)."""
    row = await tx.fetch_one("SELECT * FROM statements WHERE gist = ? ORDER BY id DESC LIMIT 1", (statement.gist,))
    return _statement(row) if row else None


async def said_again(tx: Transaction, stored: Statement, statement: Statement) -> Statement:
    """A statement said once more: it counts from now on."""
    await tx.execute(
        "UPDATE statements SET at = ?, session_id = ?, turn_id = ?, "
        "read_on = (SELECT coalesce(max(number), 0) FROM days) WHERE id = ?",
        (statement.at.isoformat(), statement.session_id, statement.turn_id, int(stored.id[1:])),
    )
    row = await tx.fetch_one("SELECT * FROM statements WHERE id = ?", (int(stored.id[1:]),))
    assert row is not None
    return _statement(row)


async def statements_with_ids(reader: Reader, ids: Sequence[str]) -> list[Statement]:
    """Statements by id ("s12")."""
    numbers = [int(ref[1:]) for ref in ids]
    rows = await reader.fetch_all(f"SELECT * FROM statements WHERE id IN ({', '.join('?' * len(numbers))})", numbers)
    return [_statement(row) for row in rows]


async def speakers(reader: Reader) -> list[str]:
    """Everybody who said something that is kept; one step into the index for each."""
    rows = await reader.fetch_all(
        "WITH RECURSIVE found (name) AS (SELECT min(speaker) FROM statements UNION ALL "
        "SELECT (SELECT min(speaker) FROM statements WHERE speaker > name) FROM found WHERE name IS NOT NULL) "
        "SELECT name FROM found WHERE name IS NOT NULL"
    )
    return [row["name"] for row in rows]


async def statements_containing(reader: Reader, texts: Sequence[str]) -> list[Statement]:
    """Statements in which one of these texts stands, whatever its case."""
    found: dict[int, Row] = {}
    for text in texts:
        rows = await reader.fetch_all("SELECT * FROM statements WHERE instr(lower(text), lower(?)) > 0", (text,))
        found |= {row["id"]: row for row in rows}
    return [_statement(row) for row in found.values()]


async def statements_of_turns(reader: Reader, turn_ids: Sequence[int]) -> list[Statement]:
    """Statements made from these turns."""
    rows = await reader.fetch_all(
        f"SELECT * FROM statements WHERE turn_id IN ({', '.join('?' * len(turn_ids))})", turn_ids
    )
    return [_statement(row) for row in rows]


async def statements_of_reply(reader: Reader, session_id: int, turn_id: int) -> list[Statement]:
    """Statements made from the turn after one of the user, if it is the assistant's."""
    rows = await reader.fetch_all(
        "SELECT * FROM statements WHERE turn_id = (SELECT min(id) FROM turns WHERE session_id = ? AND id > ?) "
        "AND kind = 'observation'",
        (session_id, turn_id),
    )
    return [_statement(row) for row in rows]


async def statements_between(
    reader: Reader, since: datetime | None, until: datetime | None, limit: int
) -> list[Statement]:
    """The last statements of a stretch of time, oldest first."""
    rows = await reader.fetch_all(
        "SELECT * FROM statements WHERE at >= ? AND at < ? ORDER BY at DESC, id DESC LIMIT ?",
        (since.isoformat() if since else "", until.isoformat() if until else "9", limit),
    )
    return [_statement(row) for row in reversed(rows)]


async def told_between(reader: Reader, after: int, before: int) -> list[str]:
    """What the user's own statements of the turns between two say."""
    rows = await reader.fetch_all(
        "SELECT text FROM statements WHERE turn_id > ? AND turn_id < ? AND kind != 'observation' ORDER BY id",
        (after, before),
    )
    return [row["text"] for row in rows]


async def statements_of_session(reader: Reader, session_id: int, first: int, last: int) -> list[Statement]:
    """Statements made from the turns of a session from one to another."""
    rows = await reader.fetch_all(
        "SELECT * FROM statements WHERE turn_id BETWEEN ? AND ? AND session_id = ? ORDER BY turn_id, id",
        (first, last, session_id),
    )
    return [_statement(row) for row in rows]


async def statements_before(reader: Reader, session_id: int, turn_id: int) -> list[Statement]:
    """The statements of the turn before another one."""
    rows = await reader.fetch_all(
        "SELECT * FROM statements WHERE turn_id = "
        "(SELECT max(id) FROM turns WHERE session_id = ? AND id < ?) ORDER BY id",
        (session_id, turn_id),
    )
    return [_statement(row) for row in rows]


async def count_reads(tx: Transaction) -> None:
    """Statements that requests contained were read on the day the reply was stored (M2)."""
    await tx.execute(
        "UPDATE statements SET read_on = (SELECT coalesce(max(number), 0) FROM days) WHERE id IN "
        "(SELECT CAST(substr(item, 2) AS INTEGER) FROM used_items WHERE counted = 0 AND section = 'recalled' "
        "AND item GLOB 's[0-9]*')"
    )
    await tx.execute("UPDATE used_items SET counted = 1 WHERE counted = 0")


async def unread_statements(reader: Reader, before: int) -> list[Statement]:
    """Statements last read before a day of use, by its number."""
    rows = await reader.fetch_all("SELECT * FROM statements WHERE read_on < ? ORDER BY id", (before,))
    return [_statement(row) for row in rows]


async def delete_statements(tx: Transaction, statements: Sequence[Statement]) -> None:
    """They are forgotten."""
    await tx.execute_many("DELETE FROM statements WHERE id = ?", [(int(statement.id[1:]),) for statement in statements])


async def summaries_containing(reader: Reader, texts: Sequence[str]) -> list[Summary]:
    """Summaries in which one of these texts stands, whatever its case."""
    found: dict[int, Row] = {}
    for text in texts:
        rows = await reader.fetch_all("SELECT * FROM summaries WHERE instr(lower(rendered), lower(?)) > 0", (text,))
        found |= {row["id"]: row for row in rows}
    return [_summary(row) for row in found.values()]


async def summaries_of_turn(reader: Reader, turn_id: int) -> list[Summary]:
    """The summaries of the segment a turn is in."""
    rows = await reader.fetch_all("SELECT * FROM summaries WHERE ? BETWEEN first_turn AND last_turn", (turn_id,))
    return [_summary(row) for row in rows]


async def delete_summaries(tx: Transaction, summaries: Sequence[Summary]) -> None:
    """They are forgotten: the only way a summary ever changes."""
    await tx.execute_many("DELETE FROM summaries WHERE id = ?", [(int(summary.id[1:]),) for summary in summaries])


# -- what requests used


async def record_used(tx: Transaction, turn_id: int, items: Iterable[tuple[str, str]]) -> None:
    """The items, by section and id, of the request an assistant's turn answers."""
    await tx.execute_many(
        "INSERT OR IGNORE INTO used_items (turn_id, section, item) VALUES (?, ?, ?)",
        [(turn_id, section, item) for section, item in items],
    )


async def used(reader: Reader, turn_id: int) -> list[tuple[str, str]]:
    """What the request before an assistant's turn contained, as (section, id)."""
    rows = await reader.fetch_all(
        "SELECT section, item FROM used_items WHERE turn_id = ? ORDER BY section, item", (turn_id,)
    )
    return [(row["section"], row["item"]) for row in rows]


def _summary(row: Row) -> Summary:
    return Summary(
        id=f"m{row['id']}",
        topic=row["topic"],
        discussed=tuple(json.loads(row["discussed"])),
        outcome=row["outcome"],
        decisions=tuple(json.loads(row["decisions"])),
        open_questions=tuple(json.loads(row["open_questions"])),
        rendered=row["rendered"],
        token_count=row["token_count"],
        language=row["language"],
        at=datetime.fromisoformat(row["at"]),
    )


def _statement(row: Row) -> Statement:
    return Statement(
        id=f"s{row['id']}",
        kind=row["kind"],
        text=row["text"],
        speaker=row["speaker"],
        session_id=row["session_id"],
        turn_id=row["turn_id"],
        language=row["language"],
        entities=tuple(json.loads(row["entities"])),
        at=datetime.fromisoformat(row["at"]),
        gist=row["gist"],
        read_on=row["read_on"],
    )


# -- days of use


async def use_day(tx: Transaction, day: str) -> None:
    """The assistant was used on a day."""
    await tx.execute("INSERT OR IGNORE INTO days (day) VALUES (?)", (day,))


async def reads_to_count(reader: Reader) -> bool:
    """Whether requests read something that is not counted yet."""
    return await reader.fetch_value("SELECT 1 FROM used_items WHERE counted = 0 LIMIT 1") is not None


async def day_number(reader: Reader) -> int:
    """How many days the assistant was used."""
    return int(await reader.fetch_value("SELECT coalesce(max(number), 0) FROM days"))
