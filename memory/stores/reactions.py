"""What the user thinks of answers, as rows."""

from datetime import datetime

from memory.database import Transaction


async def react(tx: Transaction, turn_id: int, value: int | None, at: datetime) -> None:
    """The user's thumb on an answer; None takes it back."""
    await tx.execute("DELETE FROM reactions WHERE turn_id = ?", (turn_id,))
    if value is not None:
        await tx.execute("INSERT INTO reactions VALUES (?, ?, ?)", (turn_id, value, at.isoformat()))
