"""A client of the line channel: sends messages, remembers what was answered, and survives a daemon that dies.

What scripts, tests and benchmarks need of such a client; each message has an id, so that a reply that comes twice is
recognised, and a message that was not taken is sent again.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from assistant.sockets import read_json, write_json

LONGEST_LINE = 1 << 24  # bytes
PATIENCE_SECONDS = 120.0  # until a reply comes
PAUSE_SECONDS = 0.02  # between two attempts to connect


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole reply."""

    id: str
    text: str
    said: tuple[tuple[str, str], ...]  # kind and text

    @property
    def everything(self) -> str:
        """All that was said, notices and errors included."""
        return "\n".join(text for _, text in self.said)


@dataclass(slots=True, kw_only=True)
class LineClient:
    """One chat over the line channel."""

    file: Path
    chat: str = "me"
    owner: str | None = None
    acknowledges: bool = True
    taken: list[str] = field(default_factory=list)  # ids of messages that are on the daemon's disk
    answers: dict[str, Answer] = field(default_factory=dict)  # by id, in the order they came
    deliveries: Counter[str] = field(default_factory=Counter)
    pieces: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)  # told while a message waits
    connections: int = 0
    _pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    _writer: asyncio.StreamWriter | None = None
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Self]:
        """Stays connected for the block, anew whenever the daemon went away."""
        task = asyncio.create_task(self._stay(), name=f"line client {self.chat}")
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def send(self, message: str, text: str, **more: str) -> None:
        """Hands a message in; it is sent again until it is answered or refused."""
        line = {"type": "message", "chat": self.chat, "id": message, "text": text, **more}
        if self.owner is not None:
            line["owner"] = self.owner
        self._pending[message] = line
        await self._write(line)

    async def answer(self, message: str) -> Answer:
        """Waits for the reply to a message."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(lambda: message in self.answers)
        return self.answers[message]

    async def ask(self, message: str, text: str, **more: str) -> Answer:
        """Sends a message and waits for the reply."""
        await self.send(message, text, **more)
        return await self.answer(message)

    async def until(self, *, pieces: int = 0, taken: int = 0, refused: int = 0, problems: int = 0) -> None:
        """Waits until so many have come."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(
                lambda: (
                    len(self.pieces) >= pieces
                    and len(self.taken) >= taken
                    and len(self.refused) >= refused
                    and len(self.problems) >= problems
                )
            )

    async def _stay(self) -> None:
        while True:
            try:
                reader, self._writer = await asyncio.open_unix_connection(self.file, limit=LONGEST_LINE)
            except OSError:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self.connections += 1
            try:
                await self._write(self._named({"type": "hello"}))
                for line in list(self._pending.values()):
                    await self._write(line)
                while (line := await read_json(reader) or {}) != {}:
                    await self._heard(line)
            except (OSError, ValueError):
                pass
            finally:
                writer, self._writer = self._writer, None
                writer.close()

    async def _heard(self, line: dict[str, Any]) -> None:
        kind, message = line["type"], line.get("id", "")
        if kind == "taken" and line["new"]:
            self.taken.append(message)
        elif kind == "piece":
            (self.problems if line["kind"] == "error" else self.pieces).append(line["text"])
        elif kind == "refused":
            self.refused[message] = line["text"]
        elif kind == "reply":
            self._pending.pop(message, None)
            self.deliveries[message] += 1
            said = tuple((part["kind"], part["text"]) for part in line["said"])
            self.answers.setdefault(message, Answer(id=message, text=line["text"], said=said))
            if self.acknowledges:
                await self._write(self._named({"type": "ack", "id": message}))
        async with self._changed:
            self._changed.notify_all()

    def _named(self, line: dict[str, Any]) -> dict[str, Any]:
        return {**line, "chat": self.chat, **({"owner": self.owner} if self.owner else {})}

    async def _write(self, line: dict[str, Any]) -> None:
        if self._writer is not None:
            with suppress(OSError):
                await write_json(self._writer, line)
