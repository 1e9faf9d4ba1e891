"""The typing indicator: shown again and again while somebody waits for a reply."""

import asyncio
from contextlib import suppress

from assistant.channels import Inbound
from assistant.telegram.api import Api
from memory.values import Received

LONGEST_SECONDS = 600.0  # whoever still waits then does not believe it any more


class Typing:
    """One task a chat in which somebody waits."""

    def __init__(self, api: Api, pause_seconds: float) -> None:
        self._api = api
        self._pause = pause_seconds
        self._waiting: dict[str, set[str]] = {}  # chats, and the messages that wait there
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, message: Inbound) -> None:
        """A message waits for its reply."""
        self._waiting.setdefault(message.chat, set()).add(message.message)
        if message.chat not in self._tasks:
            self._tasks[message.chat] = asyncio.create_task(
                self._type(message.chat), name=f"telegram typing {message.chat}"
            )

    def end(self, message: Received) -> None:
        """Its reply is there."""
        waiting = self._waiting.get(message.chat, set())
        waiting.discard(message.message)
        if not waiting and (task := self._tasks.pop(message.chat, None)):
            self._waiting.pop(message.chat, None)
            task.cancel()

    async def close(self) -> None:
        """Nobody waits any more."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def _type(self, key: str) -> None:
        _, chat, *thread = key.split("/")
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_SECONDS):
                while True:
                    if not self._api.flooded(int(chat)):
                        call = self._api.bot.send_chat_action(
                            int(chat), "typing", message_thread_id=int(thread[0]) if thread else None
                        )
                        await self._api.quietly(call, int(chat))
                    await asyncio.sleep(self._pause)
