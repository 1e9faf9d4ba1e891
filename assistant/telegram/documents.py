"""Text documents: fetched, decoded, and handed on as quoted words; the budget of a request cuts them to fragments."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.logs import get_logger
from assistant.telegram.messages import Words, decoded, one_line

if TYPE_CHECKING:
    from telegram import Document, Message

    from assistant.settings import TelegramSettings

ATTEMPTS = 3


class Documents:
    """Reads text documents. After one that took too long a chat's others are not waited for, for as long as that: many
    sent at once would hold up the updates of everybody, as Telegram hands out no more than a hundred unconfirmed."""

    def __init__(self, settings: "TelegramSettings") -> None:
        self._settings = settings
        self._slow_until: dict[int, float] = {}  # chats

    async def read(self, message: "Message", words: Words) -> tuple[Words, str]:
        """The words of a message with those of its document; or the sentence that says why it was not read."""
        document = message.document
        assert document is not None
        if (document.file_size or 0) > self._settings.document_bytes:
            return words, "file_large"
        data, why = await self._patiently(document, message.chat.id)
        if why:
            get_logger(part="telegram").info("file_not_read", why=why)
            return words, why
        text = decoded(data)
        if text is None or not text.strip():
            return words, "no_file"
        named = f"File {one_line(document.file_name or 'without a name')}"
        where = f"{words.quoted_from}, {named}" if words.quoted_from else named
        return replace(words, quoted=f"{words.quoted}\n{text}".strip(), quoted_from=where), ""

    async def _patiently(self, document: "Document", chat: int) -> tuple[bytes, str]:
        clock = asyncio.get_running_loop().time
        if clock() < self._slow_until.get(chat, 0.0):
            return b"", "file_lost"
        try:
            async with asyncio.timeout(self._settings.document_seconds):
                return await _fetched(document, self._settings.document_bytes)
        except TimeoutError:
            self._slow_until[chat] = clock() + self._settings.document_seconds
            return b"", "file_lost"


async def _fetched(document: "Document", most_bytes: int) -> tuple[bytes, str]:
    """The bytes of a file, or the sentence that says why there are none."""
    from telegram.error import BadRequest, TelegramError

    for attempt in range(ATTEMPTS):
        try:
            file = await document.get_file()
            if (file.file_size or 0) > most_bytes:  # told only now
                return b"", "file_large"
            data = bytes(await file.download_as_bytearray())
            return (data, "") if len(data) <= most_bytes else (b"", "file_large")
        except BadRequest:  # too big for the server, or gone
            break
        except TelegramError as exc:
            get_logger(part="telegram").info("file_again", attempt=attempt, reason=type(exc).__name__)
    return b"", "file_lost"
