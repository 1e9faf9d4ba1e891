"""What requests cost, as rows of numbers."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from memory.database import Database, Row, Transaction, View
from memory.values import Request

Reader = Database | View
_COLUMNS = (
    *("at", "session_id", "kind", "model", "tokens", "history_tokens", "prompt_tokens", "cached_tokens"),
    *("reply_tokens", "cost", "cut", "sections", "stages", "saved"),
)


async def insert(tx: Transaction, requests: Sequence[Request]) -> None:
    """Adds requests, in their order."""
    marks = ", ".join("?" * len(_COLUMNS))
    await tx.execute_many(
        f"INSERT INTO requests ({', '.join(_COLUMNS)}) VALUES ({marks})", [_values(request) for request in requests]
    )


async def between(
    reader: Reader, since: datetime | None, until: datetime | None, session_id: int | None
) -> list[Request]:
    """The requests of a stretch of time, or of one session, oldest first; `until` is exclusive."""
    rows = await reader.fetch_all(
        "SELECT * FROM requests WHERE (?1 IS NULL OR at >= ?1) AND (?2 IS NULL OR at < ?2) "
        "AND (?3 IS NULL OR session_id = ?3) ORDER BY id",
        (since.isoformat() if since else None, until.isoformat() if until else None, session_id),
    )
    return [_request(row) for row in rows]


async def spent_since(reader: Reader, since: datetime) -> float:
    """What was spent since then, as far as models have a price."""
    value = await reader.fetch_value("SELECT sum(cost) FROM requests WHERE at >= ?", (since.isoformat(),))
    return float(value or 0.0)


async def usual_tokens(reader: Reader, count: int) -> float | None:
    """The mean size of the last so many requests to the model that answers; None before the first."""
    value = await reader.fetch_value(
        "SELECT avg(tokens) FROM (SELECT tokens FROM requests WHERE kind = 'model' ORDER BY id DESC LIMIT ?)", (count,)
    )
    return None if value is None else float(value)


async def last_session(reader: Reader) -> int | None:
    """The session of the newest request that has one."""
    value = await reader.fetch_value(
        "SELECT session_id FROM requests WHERE session_id IS NOT NULL ORDER BY id DESC LIMIT 1"
    )
    return None if value is None else int(value)


async def history_tokens(reader: Reader, session_id: int) -> tuple[int, int]:
    """How many tokens, and messages, a session has so far."""
    row = await reader.fetch_one(
        "SELECT coalesce(sum(token_count), 0), count(*) FROM turns WHERE session_id = ?", (session_id,)
    )
    assert row is not None
    return int(row[0]), int(row[1])


def _values(request: Request) -> tuple[object, ...]:
    plain = {name: getattr(request, name) for name in _COLUMNS}
    plain |= {name: json.dumps(plain[name]) for name in ("sections", "stages", "saved")}
    return tuple((plain | {"at": request.at.astimezone(UTC).isoformat(), "cut": int(request.cut)}).values())


def _request(row: Row) -> Request:
    plain = {name: row[name] for name in _COLUMNS}
    plain |= {name: json.loads(row[name]) for name in ("sections", "stages", "saved")}
    return Request(**(plain | {"at": datetime.fromisoformat(row["at"]), "cut": bool(row["cut"])}))
