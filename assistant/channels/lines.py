"""The line channel: JSON lines over a socket beside the data, for scripts and tests.

You send    {"type": "message", "chat": "me", "id": "17", "text": "..."}   also owner, speaker, quoted, quoted_from
you get     {"type": "taken", ...}     it is on the disk; "new" is false when it was sent before
            {"type": "piece", ...}     the reply as it is made
            {"type": "reply", ...}     the whole reply: "text", and in "said" part by part
you send    {"type": "ack", "chat": "me", "id": "17"}      the reply is not sent again
and after a connection was lost {"type": "hello", "chat": "me"}: replies that wait are sent; some may be known already,
by their id. {"type": "refused", ...} means that a message was not taken, and why: send it again later, with the same
id. {"type": "error", ...} means that a line cannot be understood, a message without an id for example; it is the last.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from assistant.channels import Inbound, Mailbox
from assistant.errors import AssistantError, NotDelivered
from assistant.said import Said
from assistant.settings import usable_owner
from assistant.sockets import LONGEST_LINE, json_line, listening, read_json, write_json
from memory.errors import EngineError
from memory.values import Received

BYTES_PER_CHARACTER = 12  # as JSON may write it
MOST_UNREAD_BYTES = 1 << 20  # of pieces a client does not read; then they are left out, and the reply comes whole

Name = Annotated[str, Field(min_length=1, max_length=200)]


class _NoLine(Exception):
    """What came is no line of this channel; the text says why, and repeats nothing of it: it may be a secret."""


def _person(name: str) -> str:
    if not usable_owner(name):
        raise ValueError("no name of a person")
    return name


class Line(BaseModel):
    """What a client may say."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["message", "ack", "hello"]
    chat: Name = "me"
    id: Annotated[str, Field(max_length=200)] = ""  # a message and an ack need one
    owner: Annotated[str, AfterValidator(_person)] | None = None
    text: str = ""
    speaker: Annotated[str, Field(max_length=200)] | None = None
    quoted: str = ""
    quoted_from: Annotated[str, Field(max_length=200)] = ""


class LineChannel:
    """Whoever may open the socket may speak for anybody: it belongs to the one who runs the daemon."""

    name = "line"

    def __init__(self, file: Path, *, owner: str, message_characters: int, delivery_seconds: float) -> None:
        self.file = file
        self._owner = owner
        self._longest_line = LONGEST_LINE + message_characters * BYTES_PER_CHARACTER
        self._patience = delivery_seconds
        self._writers: dict[str, asyncio.StreamWriter] = {}  # where each chat was last heard from
        self._acks: dict[tuple[str, str], asyncio.Future[None]] = {}

    async def run(self, mailbox: Mailbox) -> None:
        """Listens until cancelled."""
        async with listening(self.file, partial(self._connected, mailbox), longest_line=self._longest_line):
            await asyncio.get_running_loop().create_future()

    async def stream(self, message: Received, said: Said) -> None:
        """A piece, to whoever listens and keeps up."""
        writer = self._writers.get(message.chat)
        if writer is None or writer.is_closing() or writer.transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            return
        writer.write(json_line({"type": "piece", **_ids(message), "kind": said.kind, "text": said.unformatted}))

    async def send(self, message: Received, reply: Sequence[Said]) -> None:
        """The whole reply, until it is acknowledged."""
        writer = self._writers.get(message.chat)
        if writer is None:
            raise NotDelivered("Nobody listens.")
        key = (message.chat, message.message)
        arrived = self._acks.setdefault(key, asyncio.get_running_loop().create_future())
        said = [{"kind": part.kind, "text": part.unformatted} for part in reply]
        text = "".join(part.text for part in reply if part.kind == "piece")
        try:
            async with asyncio.timeout(self._patience):
                await write_json(writer, {"type": "reply", **_ids(message), "text": text, "said": said})
                await arrived
        except (OSError, TimeoutError) as exc:
            raise NotDelivered("It was not acknowledged.") from exc
        finally:
            self._acks.pop(key, None)

    async def _connected(self, mailbox: Mailbox, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (line := await _line(reader)) is not None:
                await self._heard(mailbox, line, writer)
        except _NoLine as exc:
            await write_json(writer, {"type": "error", "text": str(exc)})
        finally:
            self._lost(writer)

    async def _heard(self, mailbox: Mailbox, line: Line, writer: asyncio.StreamWriter) -> None:
        owner = line.owner or self._owner
        chat = f"{owner}/{line.chat}"
        if line.type != "hello" and not line.id:
            raise _NoLine("A message and an ack need an id: a text of your choice, another one for each message.")
        if line.type == "ack":
            if (arrived := self._acks.get((chat, line.id))) and not arrived.done():
                arrived.set_result(None)
            return
        self._writers[chat] = writer
        if line.type == "hello":
            mailbox.wake(owner, self.name, chat)
            return
        ids = {"owner": owner, "chat": line.chat, "id": line.id}
        message = Inbound(
            owner=owner,
            chat=chat,
            message=line.id,
            text=line.text,
            speaker=line.speaker,
            quoted=line.quoted,
            quoted_from=line.quoted_from,
        )
        try:
            new = await mailbox.take(self.name, message)
        except (EngineError, AssistantError) as exc:
            await write_json(writer, {"type": "refused", **ids, "text": str(exc)})
        else:
            await write_json(writer, {"type": "taken", **ids, "new": new})

    def _lost(self, writer: asyncio.StreamWriter) -> None:
        """Nobody is there any more: what waits for an acknowledgement need not wait longer."""
        gone = [chat for chat, known in self._writers.items() if known is writer]
        for chat in gone:
            del self._writers[chat]
        for (chat, _), arrived in self._acks.items():
            if chat in gone and not arrived.done():
                arrived.set_exception(ConnectionResetError())


async def _line(reader: asyncio.StreamReader) -> Line | None:
    try:
        said = await read_json(reader)
        return None if said is None else Line(**said)
    except (ValueError, TypeError):  # a ValidationError is one, and names what was said
        raise _NoLine("That line is none of this channel, or too long.") from None


def _ids(message: Received) -> dict[str, Any]:
    owner, _, chat = message.chat.partition("/")
    return {"owner": owner, "chat": chat, "id": message.message}
