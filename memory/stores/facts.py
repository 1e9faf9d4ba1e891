"""Facts, their history and the tombstones of the forgotten ones, as rows."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from memory.database import Database, Row, Transaction, View
from memory.values import Fact, FactEvent

_COLUMNS = (
    "domain",
    "fact",
    "confidence",
    "created_at",
    "last_confirmed_at",
    "source",
    "quote",
    "turn_id",
    "language",
    "status",
    "superseded_by",
    "pinned",
    "kind",
    "attribute",
    "key",
    "value",
    "single",
    "polarity",
)
Reader = Database | View


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one act did to one fact: its row before and after; None where there is none."""

    number: int
    fact_id: str
    before: Fact | None
    after: Fact | None


def number_of(fact_id: str) -> int | None:
    """The row of a fact's id ("f12"); None when it is not one."""
    digits = fact_id.strip().lower().removeprefix("f")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 18 else None


async def get(reader: Reader, fact_id: str) -> Fact | None:
    """The fact with an id."""
    number = number_of(fact_id)
    row = await reader.fetch_one("SELECT * FROM facts WHERE id = ?", (number,)) if number is not None else None
    return _fact(row) if row else None


async def all_with_status(reader: Reader, statuses: Sequence[str]) -> list[Fact]:
    """Facts of the given statuses, oldest first."""
    marks = ", ".join("?" * len(statuses))
    return [
        _fact(row)
        for row in await reader.fetch_all(f"SELECT * FROM facts WHERE status IN ({marks}) ORDER BY id", statuses)
    ]


async def with_ids(reader: Reader, fact_ids: Iterable[str]) -> list[Fact]:
    """The facts with these ids, in the order of the ids."""
    numbers = [number for number in map(number_of, fact_ids) if number is not None]
    marks = ", ".join("?" * len(numbers))
    rows = await reader.fetch_all(f"SELECT * FROM facts WHERE id IN ({marks})", numbers)
    found = {row["id"]: _fact(row) for row in rows}
    return [found[number] for number in numbers if number in found]


async def of_turns(reader: Reader, turn_ids: Sequence[int]) -> dict[int, list[Fact]]:
    """The facts learnt from these turns, current or superseded."""
    marks = ", ".join("?" * len(turn_ids))
    rows = await reader.fetch_all(
        f"SELECT * FROM facts WHERE turn_id IN ({marks}) AND status != 'undone' ORDER BY id", turn_ids
    )
    found: dict[int, list[Fact]] = {}
    for row in rows:
        found.setdefault(row["turn_id"], []).append(_fact(row))
    return found


async def current_with_attribute(reader: Reader, attribute: str) -> list[Fact]:
    """The current facts about one thing: home, name, job."""
    rows = await reader.fetch_all(
        "SELECT * FROM facts WHERE attribute = ? AND status = 'current' ORDER BY id", (attribute,)
    )
    return [_fact(row) for row in rows]


async def current_saying(reader: Reader, text: str) -> list[Fact]:
    """The current facts with exactly this text."""
    rows = await reader.fetch_all("SELECT * FROM facts WHERE fact = ? AND status = 'current' ORDER BY id", (text,))
    return [_fact(row) for row in rows]


async def all_of_turn(reader: Reader, turn_id: int) -> list[Fact]:
    """All facts that were learnt from a turn, also those that do not hold any more."""
    rows = await reader.fetch_all("SELECT * FROM facts WHERE turn_id = ? ORDER BY id", (turn_id,))
    return [_fact(row) for row in rows]


async def offered(reader: Reader) -> set[tuple[str, datetime]]:
    """The facts that were offered for keeping, each with its last confirmation then."""
    rows = await reader.fetch_all("SELECT * FROM offered")
    return {(f"f{row['fact_id']}", datetime.fromisoformat(row["confirmed_at"])) for row in rows}


async def offer(tx: Transaction, fact: Fact) -> None:
    """A fact was offered for keeping."""
    row = (number_of(fact.id), fact.last_confirmed_at.isoformat())
    await tx.execute("INSERT OR REPLACE INTO offered VALUES (?, ?)", row)


async def pinned(reader: Reader) -> list[Fact]:
    """The current pinned facts, oldest first."""
    rows = await reader.fetch_all("SELECT * FROM facts WHERE pinned = 1 AND status = 'current' ORDER BY id")
    return [_fact(row) for row in rows]


async def chain(reader: Reader, fact_id: str) -> list[Fact]:
    """A fact with all it superseded and was superseded by, oldest first."""
    rows = await reader.fetch_all(
        "WITH RECURSIVE chain (id) AS (SELECT ? UNION "
        "SELECT f.id FROM facts f JOIN chain c ON f.superseded_by = c.id UNION "
        "SELECT f.superseded_by FROM facts f JOIN chain c ON f.id = c.id WHERE f.superseded_by IS NOT NULL) "
        "SELECT * FROM facts WHERE id IN (SELECT id FROM chain) ORDER BY id",
        (number_of(fact_id),),
    )
    return [_fact(row) for row in rows]


async def insert(tx: Transaction, fact: Fact) -> Fact:
    """A new row; the id of the value is ignored unless it is free and given."""
    number = number_of(fact.id) if fact.id else None
    columns = ("id", *_COLUMNS) if number is not None else _COLUMNS
    values = ([number] if number is not None else []) + _values(fact)
    marks = ", ".join("?" * len(columns))
    written = await tx.execute(f"INSERT INTO facts ({', '.join(columns)}) VALUES ({marks})", values)
    row = await tx.fetch_one("SELECT * FROM facts WHERE id = ?", (written.lastrowid,))
    assert row is not None
    return _fact(row)


async def update(tx: Transaction, fact: Fact) -> None:
    """Writes every column of an existing row."""
    assignments = ", ".join(f"{column} = ?" for column in _COLUMNS)
    await tx.execute(f"UPDATE facts SET {assignments} WHERE id = ?", (*_values(fact), number_of(fact.id)))


async def erase(tx: Transaction, fact_ids: Sequence[str], at: datetime) -> None:
    """Deletes rows; their history keeps id, time and action only."""
    for fact_id in fact_ids:
        number = number_of(fact_id)
        await tx.execute("UPDATE facts SET superseded_by = NULL WHERE superseded_by = ?", (number,))
        await tx.execute("DELETE FROM facts WHERE id = ?", (number,))
        await tx.execute(
            "UPDATE fact_events SET before = NULL, after = NULL, undone = 1 WHERE batch IN "
            "(SELECT batch FROM fact_events WHERE fact_id = ?) AND fact_id = ?",
            (number, number),
        )
    await record(tx, "forgotten", [(fact_id, None, None) for fact_id in fact_ids], at)


async def state(reader: Reader) -> str:
    """Changes with every turn that is stored and everything that is done to a fact."""
    row = await reader.fetch_one("SELECT (SELECT max(id) FROM turns), (SELECT max(id) FROM fact_events)")
    return "" if row is None else f"{row[0]} {row[1]}"


# -- history


async def record(
    tx: Transaction,
    action: str,
    changes: Sequence[tuple[str, Fact | None, Fact | None]],
    at: datetime,
    batch: int | None = None,
) -> int:
    """Adds one act to the history; acts of one batch are reverted together. Returns the batch."""
    if batch is None:
        batch = int(await tx.fetch_value("SELECT coalesce(max(batch), 0) + 1 FROM fact_events"))
    await tx.execute_many(
        "INSERT INTO fact_events (batch, fact_id, at, action, before, after) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (batch, number_of(fact_id), at.isoformat(), action, dump(before), dump(after))
            for fact_id, before, after in changes
        ],
    )
    return batch


async def events(reader: Reader, fact_ids: Sequence[str] | None = None, limit: int | None = None) -> list[FactEvent]:
    """What was done to these facts (to all: None), oldest first; the newest `limit` of it."""
    where, parameters = "", []
    if fact_ids is not None:
        where = f"WHERE fact_id IN ({', '.join('?' * len(fact_ids))})"
        parameters = [number_of(fact_id) for fact_id in fact_ids]
    rows = await reader.fetch_all(
        f"SELECT * FROM (SELECT * FROM fact_events {where} ORDER BY id DESC LIMIT ?) ORDER BY id",
        (*parameters, -1 if limit is None else limit),
    )
    return [_event(row) for row in rows]


async def last_batch(reader: Reader, fact_id: str | None) -> int | None:
    """The newest act that can be reverted, of one fact or of all."""
    where, parameters = ("AND fact_id = ?", (number_of(fact_id),)) if fact_id else ("", ())
    value = await reader.fetch_value(
        "SELECT max(batch) FROM fact_events WHERE undone = 0 AND action NOT IN ('forgotten', 'reverted') "
        f"AND (before IS NOT NULL OR after IS NOT NULL) {where}",
        parameters,
    )
    return None if value is None else int(value)


async def changes_of(reader: Reader, batch: int) -> list[Change]:
    """What an act changed, newest first."""
    rows = await reader.fetch_all("SELECT * FROM fact_events WHERE batch = ? AND undone = 0 ORDER BY id DESC", (batch,))
    return [
        Change(number=row["id"], fact_id=f"f{row['fact_id']}", before=load(row["before"]), after=load(row["after"]))
        for row in rows
    ]


async def changed_since(reader: Reader, batch: int) -> list[str]:
    """The facts of an act that a later one, not reverted, has changed again."""
    rows = await reader.fetch_all(
        "SELECT DISTINCT fact_id FROM fact_events WHERE batch > ? AND undone = 0 AND action NOT IN "
        "('forgotten', 'reverted') AND fact_id IN (SELECT fact_id FROM fact_events WHERE batch = ?) ORDER BY fact_id",
        (batch, batch),
    )
    return [f"f{row['fact_id']}" for row in rows]


async def images(reader: Reader, fact_ids: Sequence[str]) -> list[Fact]:
    """These facts as they were at any time, as far as the history shows it."""
    marks = ", ".join("?" * len(fact_ids))
    rows = await reader.fetch_all(
        f"SELECT before, after FROM fact_events WHERE fact_id IN ({marks})",
        [number_of(fact_id) for fact_id in fact_ids],
    )
    return [image for row in rows for image in (load(row["before"]), load(row["after"])) if image]


async def narrow_quotes(tx: Transaction, quotes: Iterable[str]) -> None:
    """Facts quoted with these words keep only their own: the rest of the sentence is to be forgotten."""
    for quote in quotes:
        rows = await tx.fetch_all("SELECT id FROM facts WHERE quote = ?", (quote,))
        for row in rows:
            await tx.execute("UPDATE facts SET quote = fact WHERE id = ?", (row["id"],))
            events = await tx.fetch_all("SELECT id, before, after FROM fact_events WHERE fact_id = ?", (row["id"],))
            await tx.execute_many(
                "UPDATE fact_events SET before = ?, after = ? WHERE id = ?",
                [(_narrowed(event["before"]), _narrowed(event["after"]), event["id"]) for event in events],
            )


def _narrowed(image: str | None) -> str | None:
    fact = load(image)
    return dump(replace(fact, quote=fact.fact)) if fact else None


async def mark_undone(tx: Transaction, batch: int) -> None:
    """An act is reverted at most once."""
    await tx.execute("UPDATE fact_events SET undone = 1 WHERE batch = ?", (batch,))


# -- tombstones


async def bury(tx: Transaction, normalised: Iterable[str], at: datetime) -> None:
    """Remembers that these texts were forgotten, without remembering them."""
    key = await _tombstone_key(tx)
    await tx.execute_many(
        "INSERT OR REPLACE INTO tombstones VALUES (?, ?)",
        [(_keyed(key, text), at.isoformat()) for text in normalised if text],
    )


async def is_buried(tx: Transaction, normalised: str) -> bool:
    """Whether a text was forgotten."""
    key = await _tombstone_key(tx)
    return await tx.fetch_value("SELECT 1 FROM tombstones WHERE hash = ?", (_keyed(key, normalised),)) is not None


async def unbury(tx: Transaction, normalised: str) -> None:
    """The user said it anew."""
    key = await _tombstone_key(tx)
    await tx.execute("DELETE FROM tombstones WHERE hash = ?", (_keyed(key, normalised),))


Tombstones = tuple[str | None, tuple[tuple[bytes, str], ...]]  # the key, and each hash with its time


async def tombstones(reader: Reader) -> Tombstones:
    """All of them with their key, to be carried into another file."""
    key = await reader.fetch_value("SELECT value FROM settings WHERE key = 'tombstone key'")
    found = await reader.fetch_all("SELECT hash, at FROM tombstones ORDER BY hash")
    return key, tuple((row["hash"], row["at"]) for row in found)


async def set_tombstones(tx: Transaction, graves: Tombstones) -> None:
    """Those of another file of the same person in place of this one's."""
    key, hashes = graves
    if key is None:
        return
    await tx.execute("DELETE FROM tombstones")
    await tx.execute("INSERT OR REPLACE INTO settings VALUES ('tombstone key', ?)", (key,))
    await tx.execute_many("INSERT INTO tombstones VALUES (?, ?)", hashes)


async def _tombstone_key(tx: Transaction) -> bytes:
    value = await tx.fetch_value("SELECT value FROM settings WHERE key = 'tombstone key'")
    if value is None:
        value = secrets.token_hex(32)
        await tx.execute("INSERT INTO settings VALUES ('tombstone key', ?)", (value,))
    return bytes.fromhex(value)


def _keyed(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)


# -- rows and values


def _fact(row: Row) -> Fact:
    return Fact(
        id=f"f{row['id']}",
        **{
            **{column: row[column] for column in _COLUMNS},
            "created_at": datetime.fromisoformat(row["created_at"]),
            "last_confirmed_at": datetime.fromisoformat(row["last_confirmed_at"]),
            "superseded_by": f"f{row['superseded_by']}" if row["superseded_by"] is not None else None,
            "pinned": bool(row["pinned"]),
            "single": bool(row["single"]),
        },
    )


def _values(fact: Fact) -> list[Any]:
    plain = asdict(fact)
    plain["created_at"] = fact.created_at.isoformat()
    plain["last_confirmed_at"] = fact.last_confirmed_at.isoformat()
    plain["superseded_by"] = number_of(fact.superseded_by) if fact.superseded_by else None
    plain["pinned"], plain["single"] = int(fact.pinned), int(fact.single)
    return [plain[column] for column in _COLUMNS]


def dump(fact: Fact | None) -> str | None:
    """A fact as JSON; the state is left out, it follows from the clock."""
    if fact is None:
        return None
    plain = asdict(fact)
    del plain["state"]
    return json.dumps(plain, ensure_ascii=False, default=lambda value: value.isoformat())


def load(text: str | None) -> Fact | None:
    """A fact from its JSON."""
    if text is None:
        return None
    plain = json.loads(text)
    for name in ("created_at", "last_confirmed_at"):
        plain[name] = datetime.fromisoformat(plain[name])
    return Fact(**plain)


def _event(row: Row) -> FactEvent:
    image = load(row["after"]) or load(row["before"])
    return FactEvent(
        number=row["id"],
        id=f"f{row['fact_id']}",
        at=datetime.fromisoformat(row["at"]),
        action=row["action"],
        fact=image.fact if image else None,
        undone=bool(row["undone"]),
    )
