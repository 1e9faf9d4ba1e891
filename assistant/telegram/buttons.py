"""Buttons: each carries its command, whom it is for, and a signature, so that it works after any restart, for that
person only, and cannot be made up."""

import hashlib
import hmac
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.offers import Offer

if TYPE_CHECKING:
    from telegram import InlineKeyboardMarkup

MOST_BYTES = 64  # of what a button may carry
_SIGNATURE = 8  # characters


class Buttons:
    """Makes and reads buttons; the key follows from the bot's token."""

    def __init__(self, token: str) -> None:
        self._key = hashlib.sha256(f"olvido buttons {token}".encode()).digest()

    def markup(self, offers: Sequence[Offer], chat: int, user: int) -> "InlineKeyboardMarkup | None":
        """The keyboard under a message; a command that is too long for a button gets none."""
        from telegram import InlineKeyboardButton, InlineKeyboardMarkup

        rows: dict[int, list[InlineKeyboardButton]] = {}
        for offer in offers:
            data = self.data(offer.command, chat, user)
            if len(data.encode()) <= MOST_BYTES:
                rows.setdefault(offer.row, []).append(InlineKeyboardButton(offer.label, callback_data=data))
        return InlineKeyboardMarkup(list(rows.values())) if rows else None

    def data(self, command: str, chat: int, user: int) -> str:
        """What a button carries."""
        return f"{self._signed(command, chat, user)}{user}{command}"

    def command(self, data: str, chat: int) -> tuple[str, int] | None:
        """The command of a button and whom it is for; None when it is none of ours."""
        signature, rest = data[:_SIGNATURE], data[_SIGNATURE:]
        user, slash, command = rest.partition("/")
        if not slash or not user.isdecimal():
            return None
        expected = self._signed(slash + command, chat, int(user))
        return (slash + command, int(user)) if hmac.compare_digest(signature.encode(), expected.encode()) else None

    def _signed(self, command: str, chat: int, user: int) -> str:
        return hmac.digest(self._key, f"{chat} {user} {command}".encode(), hashlib.sha256).hex()[:_SIGNATURE]
