"""Where replies are in their channels, as rows."""

from memory.database import Database, Transaction, View

Reader = Database | View


async def places(reader: Reader, entry_id: int) -> dict[int, str]:
    """The channel's ids of the parts of a reply, as far as there are any."""
    rows = await reader.fetch_all("SELECT part, place FROM deliveries WHERE entry = ? ORDER BY part", (entry_id,))
    return {row["part"]: row["place"] for row in rows}


async def note(tx: Transaction, entry_id: int, part: int, place: str) -> None:
    """A part has a place; an earlier one is gone."""
    await tx.execute("INSERT OR REPLACE INTO deliveries VALUES (?, ?, ?)", (entry_id, part, place))


async def drop(tx: Transaction, entry_id: int, part: int) -> None:
    """The part has no place any more."""
    await tx.execute("DELETE FROM deliveries WHERE entry = ? AND part = ?", (entry_id, part))


async def answered_at(reader: Reader, channel: str, chat: str, place: str) -> tuple[str, int | None] | None:
    """The chat and the user's turn whose reply is at a place; threads of a chat are written chat/thread."""
    row = await reader.fetch_one(
        "SELECT inbox.chat, inbox.turn_id FROM deliveries JOIN inbox ON inbox.id = entry "
        "WHERE place = ? AND channel = ? AND (chat = ? OR substr(chat, 1, ?) = ?)",
        (place, channel, chat, len(chat) + 1, f"{chat}/"),
    )
    return (row["chat"], row["turn_id"]) if row else None
