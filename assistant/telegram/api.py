"""The Bot API as this channel uses it: python-telegram-bot's Bot, its errors translated once, floods waited out."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from assistant.errors import ChannelFailed, NotDelivered
from assistant.logs import get_logger
from assistant.offers import Offer
from assistant.telegram.buttons import Buttons
from assistant.telegram.markdown import Rich
from assistant.telegram.target import Target

if TYPE_CHECKING:
    from ssl import SSLContext

    from telegram import Bot, MessageEntity
    from telegram.error import RetryAfter

    from assistant.settings import TelegramSettings

PLACEHOLDER = "…"  # holds a place until the words are there
T = TypeVar("T")


class NeverDelivered(Exception):
    """The chat is gone, or has blocked the bot."""


class GroupMoved(Exception):
    """The group is a supergroup now, with another id."""

    def __init__(self, to: int) -> None:
        super().__init__()
        self.to = to


class PlaceGone(Exception):
    """The message that was to be changed is not there any more."""


@asynccontextmanager
async def open_bot(settings: "TelegramSettings") -> "AsyncIterator[Bot]":
    """The bot, not yet introduced to its server."""
    os.environ.setdefault("PTB_TIMEDELTA", "true")  # times as timedelta, which is to become the only way
    from telegram import Bot
    from telegram.request import HTTPXRequest

    for name in ("httpx", "httpcore", "telegram"):  # they tell addresses, and the token is part of each
        logging.getLogger(name).setLevel(logging.WARNING)
    assert settings.token is not None
    patience = settings.timeout_seconds
    at_home = urlsplit(settings.base_url).hostname in ("localhost", "127.0.0.1", "::1")

    def request(connections: int) -> HTTPXRequest:
        return HTTPXRequest(
            connection_pool_size=connections,
            read_timeout=patience,
            write_timeout=patience,
            connect_timeout=patience,
            pool_timeout=patience,
            proxy=settings.proxy,
            # what runs on this machine is not reached through a proxy of the environment, which would read the token
            httpx_kwargs={"verify": _certificates(), "trust_env": not at_home},
        )

    sending, polling = request(64), request(2)
    bot = Bot(
        settings.token.get_secret_value(),
        base_url=f"{settings.base_url}/bot",
        base_file_url=f"{settings.base_url}/file/bot",
        request=sending,
        get_updates_request=polling,
    )
    try:
        yield bot
    finally:
        for part in sending, polling:  # the bot's own shutdown leaves them open where getMe never succeeded
            await part.shutdown()


@cache
def _certificates() -> "SSLContext":
    """Slow to load, and the same for all connections."""
    import httpx

    return httpx.create_ssl_context()


def wait_seconds(error: "RetryAfter") -> float:
    """How long the server asks to wait."""
    asked = error.retry_after
    return asked.total_seconds() if isinstance(asked, timedelta) else float(asked)


class Api:
    """Puts replies into chats. Until a flood is over nothing is sent to its chat."""

    def __init__(self, bot: "Bot", settings: "TelegramSettings", *, delivery_seconds: float) -> None:
        assert settings.token is not None
        self.bot = bot
        self.buttons = Buttons(settings.token.get_secret_value())
        self._settings = settings
        self._patience = delivery_seconds
        self._flooded: dict[int, float] = {}  # chats, and until when
        self._log = get_logger(part="telegram")
        self._newest: dict[int, int] = {}  # the highest id of a message heard of: in all private chats, in each group
        self.drafts = settings.streaming == "drafts"
        self._no_drafts: set[int] = set()  # chats that have none

    def flooded(self, chat: int) -> float:
        """How long nothing can be sent to a chat, in seconds."""
        left = self._flooded.get(chat, 0.0) - asyncio.get_running_loop().time()
        if left <= 0:
            self._flooded.pop(chat, None)
        return max(0.0, left)

    def saw(self, chat: int, message: int) -> None:
        """A message was heard of."""
        scope = min(chat, 0)
        self._newest[scope] = max(message, self._newest.get(scope, 0))

    def newest(self, target: Target) -> int:
        """The highest id known where a message to this chat would get the next one, more or less."""
        return max(self._newest.get(min(target.chat, 0), 0), target.message or 0)

    async def open_place(self, target: Target) -> tuple[int, bool]:
        """A message that will hold a part of a reply: its id, and whether there may be another one nobody knows of."""
        from telegram import LinkPreviewOptions, ReplyParameters

        pointed = target.group and target.message is not None
        points = ReplyParameters(target.message or 0, allow_sending_without_reply=True) if pointed else None
        attempts = 0

        async def attempt() -> int:
            nonlocal attempts
            attempts += 1
            sent = await self.bot.send_message(
                target.chat,
                PLACEHOLDER,
                message_thread_id=target.thread,
                reply_parameters=points,
                link_preview_options=LinkPreviewOptions(is_disabled=True),
            )
            self.saw(target.chat, sent.message_id)
            return sent.message_id

        return await self._insist(target, attempt), attempts > 1

    async def sweep(self, target: Target, place: int) -> None:
        """Removes a placeholder of ours that nobody knows of: it is there already if it cannot be changed into one.

        As insistent as any delivery: what is not swept now stays in the chat for good.
        """
        from telegram.error import BadRequest

        try:
            await self._insist(target, lambda: self.bot.edit_message_text(PLACEHOLDER, target.chat, place))
        except BadRequest as exc:
            if "not modified" in exc.message.lower():
                await self.take_away(target, str(place))

    async def fill(self, target: Target, place: str, rich: Rich, offers: Sequence[Offer] = ()) -> None:
        """Puts words and buttons into a place; without entities where the server refuses them."""
        from telegram.error import BadRequest

        try:
            await self._insist(target, lambda: self._edit(target, place, rich, offers))
        except BadRequest as exc:
            if not rich.spans:
                raise
            self._log.warning("entities_refused", reason=exc.message)
            await self._insist(target, lambda: self._edit(target, place, Rich(text=rich.text), offers))

    async def take_away(self, target: Target, place: str) -> None:
        """Removes a place nothing came to."""
        from telegram.error import BadRequest

        with suppress(BadRequest):  # it is gone already
            await self._insist(target, lambda: self.bot.delete_message(target.chat, int(place)))

    async def draft(self, target: Target, number: int, rich: Rich) -> bool:
        """Shows a reply in the making; whether the server and the chat have drafts."""
        from telegram.error import BadRequest, InvalidToken

        if not self.drafts or target.group or target.chat in self._no_drafts:
            return False
        try:
            await self.bot.send_message_draft(
                target.chat, number, rich.text, message_thread_id=target.thread, entities=entities(rich)
            )
        except InvalidToken:  # a method the server does not know
            self.drafts = False
        except BadRequest as exc:
            self._log.info("no_drafts", chat=target.chat, reason=exc.message)
            self._no_drafts.add(target.chat)
        return self.drafts and target.chat not in self._no_drafts

    async def tell(self, chat: int, thread: int | None, text: str) -> None:
        """A sentence that is no reply to a journalled message: tried once."""
        from telegram.error import TelegramError

        try:
            await self.bot.send_message(chat, text, message_thread_id=thread)
        except TelegramError as exc:
            self._log.info("not_told", chat=chat, reason=type(exc).__name__)

    async def quietly(self, call: Awaitable[object], chat: int) -> None:
        """Something nobody misses when it fails; a flood is noted."""
        from telegram.error import RetryAfter, TelegramError

        try:
            await call
        except RetryAfter as exc:
            self.note_flood(chat, wait_seconds(exc))
        except TelegramError as exc:
            self._log.debug("not_done", reason=type(exc).__name__)

    def note_flood(self, chat: int, seconds: float) -> None:
        """The server wants nothing for this chat for a while."""
        self._flooded[chat] = asyncio.get_running_loop().time() + seconds

    async def _edit(self, target: Target, place: str, rich: Rich, offers: Sequence[Offer]) -> None:
        from telegram import LinkPreviewOptions
        from telegram.error import BadRequest

        try:
            await self.bot.edit_message_text(
                rich.text,
                target.chat,
                int(place),
                entities=entities(rich),
                link_preview_options=LinkPreviewOptions(is_disabled=True),
                reply_markup=self.buttons.markup(offers, target.chat, target.user),
            )
        except BadRequest as exc:
            if "not modified" in exc.message.lower():
                return
            if "message to edit not found" in exc.message.lower() or "can't be edited" in exc.message.lower():
                raise PlaceGone from None
            raise

    async def _insist(self, target: Target, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats a call through floods and broken connections, for as long as a reply may take to be delivered."""
        from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, NetworkError, RetryAfter

        loop = asyncio.get_running_loop()
        end, pause = loop.time() + self._patience, min(self._settings.retry_seconds, 1.0)
        while True:
            if (wait := self.flooded(target.chat)) > 0:
                if wait > self._settings.flood_wait_seconds:
                    raise NotDelivered("Telegram asks to wait.")
                await asyncio.sleep(wait)
                end = max(end, loop.time() + pause)
            try:
                return await call()
            except RetryAfter as exc:
                self.note_flood(target.chat, wait_seconds(exc))
            except BadRequest as exc:
                if "chat not found" in exc.message.lower():
                    raise NeverDelivered from None
                raise
            except ChatMigrated as exc:
                raise GroupMoved(exc.new_chat_id) from None
            except Forbidden as exc:
                self._log.warning("never_delivered", chat=target.chat, reason=type(exc).__name__)
                raise NeverDelivered from None
            except InvalidToken:
                raise ChannelFailed("Telegram does not accept the bot's token. Correct telegram.token.") from None
            except NetworkError as exc:
                if loop.time() + pause > end:
                    raise NotDelivered("Telegram cannot be reached.") from None
                self._log.info("again", reason=type(exc).__name__)
                await asyncio.sleep(pause)
                pause = min(2 * pause, self._settings.retry_max_seconds)


def entities(rich: Rich) -> "list[MessageEntity]":
    """As the library wants them."""
    from telegram import MessageEntity

    return [
        MessageEntity(span.type, span.offset, span.length, url=span.url, language=span.language) for span in rich.spans
    ]
