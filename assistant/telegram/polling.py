"""Long polling: asks for updates, confirms them when they are in the journal, and gets over whatever may fail."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from assistant.errors import AssistantError, ChannelFailed
from assistant.logs import get_logger
from assistant.telegram.api import open_bot, wait_seconds

if TYPE_CHECKING:
    from telegram import Bot, Update, User

    from assistant.settings import TelegramSettings

WANTED = ("message", "edited_message", "callback_query", "message_reaction")
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError, OSError)
OTHERS_WAIT_SECONDS = 1.0  # how long news of all chats wait for what is slow in one
T = TypeVar("T")
Heard = Callable[["Update"], Awaitable[None]]
TOKEN_REFUSED = "Telegram does not accept the bot's token. Get the right one from @BotFather and set telegram.token."
OTHER_POLLER = (
    "Another program asks Telegram for the messages of the same bot, or gets them by a webhook. Stop the other one, or "
    "make a bot of its own for each with @BotFather."
)


async def name_of_bot(settings: "TelegramSettings") -> tuple[str, str]:
    """The name of the bot whose token is configured, or what is wrong; asked once."""
    from telegram.error import InvalidToken, TelegramError

    try:
        async with open_bot(settings) as bot:
            return (await bot.get_me()).name, ""
    except InvalidToken:
        return "", TOKEN_REFUSED
    except TelegramError as exc:
        return "", f"Telegram cannot be reached ({type(exc).__name__}). Check the network, telegram.base_url and proxy."


class Polling:
    """One bot's updates."""

    def __init__(self, bot: "Bot", settings: "TelegramSettings", problem: Callable[[str], None]) -> None:
        self._bot = bot
        self._settings = settings
        self._problem = problem
        self._log = get_logger(part="telegram")

    async def introduced(self) -> "User":
        """The bot's own account, as soon as the server tells."""
        await self.lasting(self._bot.initialize)
        return self._bot.bot

    async def run(self, heard: "Heard") -> None:
        """Until cancelled; raises ChannelFailed when the token is refused or another program keeps polling.

        Updates of one chat are heard in order, those of different chats at the same time: whoever sends something slow
        to read holds up nobody else. What is not heard yet is not confirmed, so it is in every answer until it is.
        """
        offset: int | None = None
        unconfirmed: dict[int, asyncio.Task[None]] = {}
        newest: dict[int, asyncio.Task[None]] = {}  # of each chat
        try:
            while True:
                updates, after = await self.lasting(lambda offset=offset: self._ask(offset))  # type: ignore[misc]
                for update in updates:
                    if update.update_id not in unconfirmed:
                        chat = update.effective_chat.id if update.effective_chat else 0
                        hearing = _in_order(newest.get(chat), heard, update)
                        newest[chat] = asyncio.create_task(hearing, name=f"telegram update {update.update_id}")
                        unconfirmed[update.update_id] = newest[chat]
                if unconfirmed:
                    await asyncio.wait(unconfirmed.values(), timeout=OTHERS_WAIT_SECONDS)
                again = {number: task.exception() for number, task in unconfirmed.items() if task.done()}
                again = {number: failure for number, failure in again.items() if failure is not None}
                slow = [number for number, task in unconfirmed.items() if not task.done()]
                offset = min([*slow, *again], default=after)
                done = {number for number in unconfirmed if offset and number < offset}
                unconfirmed = {number: task for number, task in unconfirmed.items() if number not in {*done, *again}}
                newest = {chat: task for chat, task in newest.items() if not task.done()}
                if again:  # not taken: they come again
                    self._log.info("not_taken", reason=type(next(iter(again.values()))).__name__)
                    await asyncio.sleep(self._settings.retry_seconds)
        finally:
            for task in unconfirmed.values():
                task.cancel()
            await asyncio.gather(*unconfirmed.values(), return_exceptions=True)

    async def _ask(self, offset: int | None) -> "tuple[Sequence[Update], int | None]":
        """New updates, and the offset that confirms them; what cannot be read as an update is passed over.

        The library's own method reads all or none, and tells everybody's words when one cannot be read.
        """
        from telegram import Update

        seconds = self._settings.poll_seconds
        asked = {"timeout": seconds, "allowed_updates": WANTED, **({"offset": offset} if offset else {})}
        found = await self._bot._post("getUpdates", asked, read_timeout=seconds + self._settings.timeout_seconds)
        updates = []
        for raw in found if isinstance(found, list) else ():
            number = raw.get("update_id") if isinstance(raw, dict) else None
            if not isinstance(number, int):
                continue
            offset = max(offset or 0, number + 1)
            try:
                update = Update.de_json(raw, self._bot)
                _check_ids(update)
                updates.append(update)
            except UNREADABLE as exc:
                self._log.warning("unreadable_update", update=number, reason=type(exc).__name__)
        return updates, offset

    async def lasting(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats a call until it succeeds, with longer and longer pauses."""
        from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError

        loop = asyncio.get_running_loop()
        pause, conflict_since = self._settings.retry_seconds, 0.0
        while True:
            wait = pause
            try:
                result = await call()
            except InvalidToken:
                raise ChannelFailed(TOKEN_REFUSED) from None
            except Conflict:
                conflict_since = conflict_since or loop.time()
                if loop.time() - conflict_since >= self._settings.conflict_seconds:
                    raise ChannelFailed(OTHER_POLLER) from None
                self._problem(OTHER_POLLER)
            except RetryAfter as exc:
                wait = wait_seconds(exc)
                self._problem(f"Telegram asks to wait for {wait:.0f} seconds.")
            except TelegramError as exc:
                self._problem(f"Telegram cannot be reached ({type(exc).__name__}). It is tried again.")
            else:
                self._problem("")
                return result
            await asyncio.sleep(wait)
            pause = min(2 * pause, self._settings.retry_max_seconds)


async def _in_order(before: "asyncio.Task[None] | None", heard: "Heard", update: "Update") -> None:
    """Hears an update of a chat after the one before it; if that has to come again, so has this."""
    if before is not None:
        await asyncio.wait([before])
        if before.cancelled() or before.exception() is not None:
            raise AssistantError("The update before it was not taken.")
    await heard(update)


def _check_ids(update: "Update") -> None:
    """The library takes any value for an id."""
    for of, name in ((update.effective_chat, "id"), (update.effective_user, "id"), (update.message, "message_id")):
        if of is not None and not isinstance(getattr(of, name), int):
            raise TypeError(f"{name} is no number")
