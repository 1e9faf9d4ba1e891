"""What the tests of Telegram share: a strict Bot API server, a model, and a daemon between them."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path

from assistant.daemon import Daemon
from assistant.testing import EchoServer, OpenAIServer, serving, settings_for
from assistant.testing_telegram import BotServer, Shown, telegram_settings

ANA, BEN, EVE, FAMILY = 101, 102, 666, -1001
PEOPLE = {ANA: "ana", BEN: "ben", FAMILY: "family"}


async def becomes(true: Callable[[], object]) -> None:
    """Waits for something of the daemon in this process that tells nobody."""
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 (there is no event for it)
            await asyncio.sleep(0.01)


class World:
    """Ana and Ben are on the list, Eve is not; the family group is."""

    def __init__(self, folder: Path, bot: BotServer, model: OpenAIServer) -> None:
        self.folder, self.bot, self.model = folder, bot, model
        bot.user(ANA, "Ana"), bot.user(BEN, "Ben"), bot.user(EVE, "Eve", "es")
        bot.group(FAMILY, forum=True)

    def environment(self, people: dict[int, str] | None = None, **more: object) -> dict[str, str]:
        given = PEOPLE if people is None else people
        return {**settings_for(self.model), **telegram_settings(self.bot, given, **more)}

    @asynccontextmanager
    async def serving(self, clock=None, people=None, **more: object):
        async with serving(self.folder, self.environment(people, **more), clock) as daemon:
            yield daemon

    async def until(self, true: Callable[[], object]) -> None:
        await asyncio.to_thread(self.bot.until, true)

    async def shows(self, text: str, chat: int = ANA) -> Shown:
        """The message of a chat with this text, when it is there."""
        await self.until(lambda: self._with(text, chat))
        return self._with(text, chat)[-1]

    async def idle(self, daemon: Daemon) -> None:
        """Until everything that came in is answered and delivered."""
        await self.until(lambda: not self.bot.unconfirmed)
        await becomes(lambda: not daemon.inbox.chats)

    async def ask(self, daemon: Daemon, text: str, user: int = ANA, **more: object) -> list[Shown]:
        """Says something and returns what the bot said to it."""
        chat = more.get("chat", user)
        before = {shown.id for shown in self.bot.chat(chat)}
        self.bot.say(user, text, **more)
        await self.idle(daemon)
        return [shown for shown in self.bot.chat(chat) if shown.id not in before]

    async def ask_meanwhile(self, text: str, user: int) -> list[Shown]:
        """The same while somebody else still waits."""
        before = {shown.id for shown in self.bot.chat(user)}
        self.bot.say(user, text)
        await self.until(lambda: [one for one in self.bot.chat(user) if one.id not in before and one.text != "…"])
        return [shown for shown in self.bot.chat(user) if shown.id not in before]

    def _with(self, text: str, chat: int) -> list[Shown]:
        return [shown for shown in self.bot.chat(chat) if text in shown.text]


@asynccontextmanager
async def world(folder: Path, *, drafts: bool = True, model: OpenAIServer | None = None):
    with BotServer(drafts=drafts) as bot, model or EchoServer() as echo:
        yield World(folder, bot, echo)
        assert bot.rejected == [], bot.rejected
