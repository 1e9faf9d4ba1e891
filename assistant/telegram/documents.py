"""Text documents: fetched, decoded, and handed on as quoted words; the budget of a request cuts them to fragments."""

from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.logs import get_logger
from assistant.telegram.messages import Words, decoded, one_line

if TYPE_CHECKING:
    from telegram import Message

    from assistant.settings import TelegramSettings

ATTEMPTS = 3


async def read_document(message: "Message", words: Words, settings: "TelegramSettings") -> tuple[Words, str]:
    """The words of a message with those of its document; or the sentence that says why it was not read."""
    from telegram.error import BadRequest, TelegramError

    document = message.document
    assert document is not None
    if (document.file_size or 0) > settings.document_bytes:
        return words, "file_large"
    for attempt in range(ATTEMPTS):
        try:
            file = await document.get_file()
            data = bytes(await file.download_as_bytearray())
            break
        except BadRequest:  # too big for the server, or gone
            return words, "file_lost"
        except TelegramError as exc:
            get_logger(part="telegram").info("file_again", attempt=attempt, reason=type(exc).__name__)
    else:
        return words, "file_lost"
    if len(data) > settings.document_bytes:
        return words, "file_large"
    text = decoded(data)
    if text is None or not text.strip():
        return words, "no_file"
    named = f"File {one_line(document.file_name or 'without a name')}"
    where = f"{words.quoted_from}, {named}" if words.quoted_from else named
    return replace(words, quoted=f"{words.quoted}\n{text}".strip(), quoted_from=where), ""
