"""The journal of messages that came in through channels, as rows."""

from collections.abc import Sequence
from datetime import datetime

from memory.database import Database, Row, Transaction, View
from memory.values import Received

Reader = Database | View


async def insert(
    tx: Transaction,
    *,
    channel: str,
    chat: str,
    message: str,
    speaker: str | None,
    content: str,
    private: bool,
    at: datetime,
    corrects: str | None = None,
) -> None:
    """A message as it came in."""
    await tx.execute(
        "INSERT INTO inbox (channel, chat, message, speaker, content, private, received_at, corrects) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (channel, chat, message, speaker, content, int(private), at.isoformat(), corrects),
    )


async def find(reader: Reader, channel: str, chat: str, message: str) -> Received | None:
    """The message with the channel's own id."""
    row = await reader.fetch_one(
        "SELECT * FROM inbox WHERE channel = ? AND chat = ? AND message = ?", (channel, chat, message)
    )
    return _received(row) if row else None


async def next_waiting(reader: Reader, channel: str, chat: str) -> Received | None:
    """The oldest message of a chat whose reply was not sent."""
    row = await reader.fetch_one(
        "SELECT * FROM inbox WHERE channel = ? AND chat = ? AND sent_at IS NULL ORDER BY id LIMIT 1", (channel, chat)
    )
    return _received(row) if row else None


async def waiting_chats(reader: Reader) -> list[tuple[str, str, int]]:
    """Channel, chat and number of messages that wait, the chat that waits longest first."""
    rows = await reader.fetch_all(
        "SELECT channel, chat, count(*) AS waiting FROM inbox WHERE sent_at IS NULL GROUP BY channel, chat "
        "ORDER BY min(id)"
    )
    return [(row["channel"], row["chat"], row["waiting"]) for row in rows]


async def count_waiting(reader: Reader, channel: str, chat: str) -> int:
    """How many messages of a chat are not answered yet."""
    return int(
        await reader.fetch_value(
            "SELECT count(*) FROM inbox WHERE channel = ? AND chat = ? AND sent_at IS NULL AND answered_at IS NULL",
            (channel, chat),
        )
    )


async def begin(tx: Transaction, entry_id: int, at: datetime) -> None:
    """The message is being worked on, and must not be a second time."""
    await tx.execute("UPDATE inbox SET begun_at = ? WHERE id = ?", (at.isoformat(), entry_id))


async def take(tx: Transaction, entry_id: int, turn_id: int, said: str) -> None:
    """The message is stored as a turn; from here on the turn has its words."""
    await tx.execute("UPDATE inbox SET turn_id = ?, said = ?, content = '' WHERE id = ?", (turn_id, said, entry_id))


async def answer(tx: Transaction, entry_id: int, said: str, at: datetime) -> None:
    """The reply is there and can be sent."""
    await tx.execute(
        "UPDATE inbox SET said = ?, content = '', answered_at = ? WHERE id = ? AND answered_at IS NULL",
        (said, at.isoformat(), entry_id),
    )


async def sent(tx: Transaction, entry_id: int, at: datetime) -> None:
    """The reply was delivered: only ids and times are left."""
    await tx.execute(
        "UPDATE inbox SET said = '[]', content = '', sent_at = ?, answered_at = coalesce(answered_at, ?) WHERE id = ?",
        (at.isoformat(), at.isoformat(), entry_id),
    )


async def delete_sent(tx: Transaction, before: datetime) -> int:
    """Forgets the ids of messages that no channel will deliver again; how many."""
    return (await tx.execute("DELETE FROM inbox WHERE sent_at < ?", (before.isoformat(),))).rowcount


async def with_words(reader: Reader) -> list[Received]:
    """The messages and replies whose words are still there."""
    rows = await reader.fetch_all("SELECT * FROM inbox WHERE content != '' OR said != '[]' ORDER BY id")
    return [_received(row) for row in rows]


async def rewrite(tx: Transaction, entry_id: int, content: str, said: str) -> None:
    """Replaces the words, when some of them are forgotten."""
    await tx.execute("UPDATE inbox SET content = ?, said = ? WHERE id = ?", (content, said, entry_id))


async def is_private(reader: Reader, channel: str, chat: str) -> bool:
    """Whether nothing of what is said in a chat is to be kept."""
    return bool(await reader.fetch_value("SELECT private FROM chats WHERE channel = ? AND chat = ?", (channel, chat)))


async def set_private(tx: Transaction, channel: str, chat: str, private: bool) -> None:
    """From the next message on."""
    await tx.execute("INSERT OR REPLACE INTO chats VALUES (?, ?, ?)", (channel, chat, int(private)))


async def everything(reader: Reader) -> list[dict[str, object]]:
    """All rows, to be carried into another file; those not answered with their words, though these are a turn."""
    rows = await reader.fetch_all(
        "SELECT inbox.*, turns.content AS words FROM inbox LEFT JOIN turns ON turns.id = turn_id ORDER BY inbox.id"
    )
    return [dict(row) for row in rows]


async def replace_all(tx: Transaction, rows: Sequence[dict[str, object]]) -> None:
    """The journal of a later state of this file in place of its own."""
    here = await tx.fetch_all("SELECT channel, chat, message, turn_id FROM inbox WHERE turn_id IS NOT NULL")
    turns = {(row["channel"], row["chat"], row["message"]): row["turn_id"] for row in here}
    await tx.execute("DELETE FROM inbox")
    for given in rows:
        row = dict(given)
        words = row.pop("words")
        if (
            turns.get((row["channel"], row["chat"], row["message"])) != row["turn_id"]
        ):  # said later: no turn of this file
            row["turn_id"] = None
            if row["answered_at"] is None and words is not None:
                row |= {"content": words, "said": "[]"}
        await tx.execute(
            f"INSERT INTO inbox ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
        )


async def give_up_waiting(tx: Transaction, at: datetime) -> int:
    """Nobody knows any more which of them were answered: none is, a second time. How many."""
    return (
        await tx.execute(
            "UPDATE inbox SET said = '[]', content = '', sent_at = ?, answered_at = coalesce(answered_at, ?) "
            "WHERE sent_at IS NULL",
            (at.isoformat(), at.isoformat()),
        )
    ).rowcount


def _received(row: Row) -> Received:
    return Received(
        id=row["id"],
        channel=row["channel"],
        chat=row["chat"],
        message=row["message"],
        speaker=row["speaker"],
        content=row["content"],
        private=bool(row["private"]),
        received_at=datetime.fromisoformat(row["received_at"]),
        begun=row["begun_at"] is not None,
        turn_id=row["turn_id"],
        said=row["said"],
        answered=row["answered_at"] is not None,
        sent=row["sent_at"] is not None,
        corrects=row["corrects"],
    )
