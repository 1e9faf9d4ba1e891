"""The Telegram channel: polls for updates, hands messages in, shows and delivers replies.

An update is confirmed, by asking for the next ones, only after what it brought is in the journal; Telegram delivers it
again otherwise, and the journal recognises it by its ids.
"""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.channels import Inbound, Mailbox
from assistant.commands import command_name
from assistant.errors import AssistantError, NotDelivered
from assistant.logs import get_logger
from assistant.problems import Problem
from assistant.said import Said
from assistant.telegram import messages
from assistant.telegram.api import Api, GroupMoved, NeverDelivered, open_bot
from assistant.telegram.documents import Documents
from assistant.telegram.menu import DEFAULT, set_menu
from assistant.telegram.moved import Moved
from assistant.telegram.polling import Polling
from assistant.telegram.replies import Replies
from assistant.telegram.strangers import Strangers
from assistant.telegram.target import Target, chat_key, target_of
from assistant.telegram.typing import Typing
from memory.errors import EngineError
from memory.values import Received

if TYPE_CHECKING:
    from telegram import CallbackQuery, Chat, Message, MessageReactionUpdated, Update, User

    from assistant.settings import Settings
    from memory.language import LanguagePack

PRESSED_ONCE = frozenset({"undo", "replace"})  # a second press of the same button does nothing


class TelegramChannel:
    """People on the list talk to their own memory; a listed group has one of its own."""

    name = "telegram"
    endless = True

    def __init__(self, settings: "Settings", packs: "Mapping[str, LanguagePack]") -> None:
        self._settings = settings.telegram
        self._serve = settings.serve
        self._packs = packs
        self._documents = Documents(self._settings)
        self._moved = Moved(Path(settings.data_dir) / "telegram" / "moved")
        self._people = self._moved.people(self._settings.people)
        self._strangers = Strangers(Path(settings.data_dir) / "telegram" / "strangers")
        self._log = get_logger(part="telegram")
        self._ready = asyncio.Event()
        self._api: Api
        self._replies: Replies
        self._typing: Typing
        self._mailbox: Mailbox
        self._me: User
        self.facts_a_page = self._settings.facts_a_page
        self.last_problem: Problem | None = None

    # -- the channel

    async def run(self, mailbox: Mailbox) -> None:
        """Polls until cancelled."""
        self._mailbox = mailbox
        async with open_bot(self._settings) as bot:
            self._api = Api(bot, self._settings, delivery_seconds=self._serve.delivery_seconds)
            self._replies = Replies(self._api, mailbox, self._pause, self._target)
            self._typing = Typing(self._api, self._settings.typing_seconds)
            polling = Polling(bot, self._settings, self._tell_problem)
            try:
                self._me = await polling.introduced()
                self._ready.set()
                await polling.lasting(lambda: set_menu(bot, self._packs))
                await polling.run(self._heard_safely)
            finally:
                self._ready.clear()
                await self._typing.close()
                await self._replies.close()

    async def stream(self, message: Received, said: Said) -> None:
        """A piece of a reply, shown when there is time."""
        if self._ready.is_set() and self._settings.streaming != "off":
            self._replies.stream(message, said)

    async def send(self, message: Received, reply: Sequence[Said]) -> None:
        """The whole reply."""
        from telegram.error import TelegramError

        await self._ready.wait()
        self._typing.end(message)
        try:
            await self._replies.send(message, reply)
        except NeverDelivered:
            self._log.warning("given_up", chat=message.chat)
        except NotDelivered:
            self._try_later(message)
            raise
        except GroupMoved as exc:
            if not await asyncio.to_thread(self._move, self._target(message).chat, exc.to):
                self._log.warning("given_up", chat=message.chat)
                return
            self._try_later(message)
            raise NotDelivered("The group moved.") from None
        except TelegramError as exc:  # it will not take it the next time either
            self._log.error("refused", chat=message.chat, reason=type(exc).__name__, why=str(exc))

    def _target(self, message: Received) -> Target:
        """Where a reply goes now."""
        target = target_of(message)
        return replace(target, chat=self._moved.now(target.chat))

    def _move(self, old: int, new: int) -> bool:
        """A group on the list became a supergroup: its memory is there from now on. Whether it was on the list."""
        if old not in self._people and new not in self._people:
            return False
        if self._moved.note(old, new):
            self._people = self._moved.people(self._settings.people)
            self._log.warning("group_moved", old=old, new=new, todo="put the new id into telegram.people")
        return True

    def _try_later(self, message: Received) -> None:
        target = self._target(message)
        wait = max(self._settings.retry_seconds, self._api.flooded(target.chat))
        loop = asyncio.get_running_loop()
        loop.call_later(wait, self._mailbox.wake, target.owner, self.name, message.chat)

    def _pause(self, target: Target, drafts: bool) -> float:
        if drafts:
            return self._settings.draft_seconds
        return self._settings.group_edit_seconds if target.group else self._settings.edit_seconds

    def _tell_problem(self, text: str) -> None:
        self.last_problem = Problem(text) if text else None
        if text:
            self._log.warning("telegram_trouble", reason=text)

    # -- what comes in

    async def _heard_safely(self, update: "Update") -> None:
        if update.message is not None:
            self._api.saw(update.message.chat.id, update.message.message_id)
        try:
            await self._heard(update)
        except AssistantError:  # it is being stopped: the update comes again
            raise
        except EngineError as exc:  # it cannot be written down: told, as nobody would answer it
            self._log.warning("refused_update", reason=str(exc))
            if update.effective_chat and update.effective_message:
                await self._api.tell(update.effective_chat.id, None, str(exc))
        except Exception:  # noqa: BLE001 (one update that breaks something is not everybody's; logged)
            self._log.exception("update_failed", update=update.update_id)

    async def _heard(self, update: "Update") -> None:
        if update.message is not None:
            await self._read_move(update.message)
            await self._message(update.message)
        elif update.edited_message is not None:
            await self._message(update.edited_message, edited=True)
        elif update.callback_query is not None:
            await self._press(update.callback_query)
        elif update.message_reaction is not None:
            await self._reaction(update.message_reaction)

    async def _read_move(self, message: "Message") -> None:
        """Told by Telegram itself, in the old group and in the new one."""
        if message.migrate_to_chat_id:
            await asyncio.to_thread(self._move, message.chat.id, message.migrate_to_chat_id)
        elif message.migrate_from_chat_id:
            await asyncio.to_thread(self._move, message.migrate_from_chat_id, message.chat.id)

    async def _message(self, message: "Message", *, edited: bool = False) -> None:
        user, chat = message.from_user, message.chat
        if user is None or user.is_bot or chat.type == "channel":
            return
        named = chat.type == "private" or messages.is_addressed(message, self._me)
        if named:
            owner = await self._owner(chat, user, message)
        else:  # it may have named us before it was edited
            owner = self._people.get(chat.id) if edited and user.id in self._people else None
        if owner is None:
            return
        sentence = messages.unreadable(message)
        words = messages.words_of(message, self._me)
        if message.document is not None and not sentence and named:
            words, sentence = await self._documents.read(message, words)
        key = messages.message_key(message, user.id)
        base = Inbound(
            owner=owner,
            chat=chat_key(owner, chat.id, messages.thread_of(message)),
            message=key,
            text=words.text,
            speaker=messages.one_line(user.full_name) if chat.type != "private" else None,
            quoted=words.quoted,
            quoted_from=words.quoted_from,
            language=(user.language_code or "")[:2],
        )
        if edited:
            when = int(message.edit_date.timestamp()) if message.edit_date else 0
            version = f"{when}.{zlib.crc32(base.content.encode('utf-8', 'replace')):x}"  # twice in a second is twice
            if base.content and (words.text or not sentence):  # a caption, too; a place that moves is no edit
                await self._take(replace(base, message=f"{key}~{version}", corrects=key, known_only=not named))
        elif sentence:
            about = replace(base, message=key if not words.text else f"m{key}", text="", quoted="", answer=sentence)
            await self._take(about)
            if words.text:
                await self._take(base)
        elif base.content:
            await self._take(base)

    async def _take(self, inbound: Inbound) -> bool:
        new = await self._mailbox.take(self.name, inbound)
        if new and not inbound.corrects:
            self._typing.begin(inbound)
        return new

    async def _owner(self, chat: "Chat", user: "User", message: "Message") -> str | None:
        """Whose memory it is for; whoever is not on the list is told once, and nothing else happens."""
        people = self._people
        known = people.get(user.id) is not None
        if chat.type == "private":
            if known:
                return people[user.id]
            await self._turn_away(user, user.id, chat, "stranger")
        elif people.get(chat.id) is not None:
            if known:
                return people[chat.id]
            await self._turn_away(user, user.id, chat, "stranger", messages.thread_of(message))
        elif known:
            await self._turn_away(user, chat.id, chat, "group_not_listed", messages.thread_of(message))
        return None

    async def _turn_away(self, user: "User", number: int, chat: "Chat", key: str, thread: int | None = None) -> None:
        if await asyncio.to_thread(self._strangers.first_time, number):
            self._log.info("stranger", id=number)
            await self._api.tell(chat.id, thread, self._sentence(key, user).format(id=number))

    def _sentence(self, key: str, user: "User") -> str:
        pack = self._packs.get((user.language_code or "")[:2]) or self._packs[DEFAULT]
        return pack.answers.get(key) or self._packs[DEFAULT].answers[key]

    # -- presses and reactions

    async def _press(self, query: "CallbackQuery") -> None:
        from telegram import Message

        user, message = query.from_user, query.message
        people = self._people
        answer = self._api.bot.answer_callback_query
        chat = message.chat if message else None
        number = user.id if chat is None or chat.type == "private" else chat.id
        if message is None or chat is None or user.id not in people or number not in people:
            await self._api.quietly(answer(query.id), user.id)
            return
        read = self._api.buttons.command(query.data or "", chat.id)
        if read is None or read[1] != user.id:
            text = self._sentence("not_yours" if read else "button_void", user)
            await self._api.quietly(answer(query.id, text, show_alert=True), user.id)
            return
        command, owner = read[0], people[number]
        press = command if command_name(command) in PRESSED_ONCE else query.id
        thread = messages.thread_of(message) if isinstance(message, Message) else None
        inbound = Inbound(
            owner=owner,
            chat=chat_key(owner, chat.id, thread),
            message=f"{message.message_id}@{user.id}!{press}",
            text=command,
        )
        await self._mailbox.take(self.name, inbound)
        await self._api.quietly(answer(query.id), user.id)

    async def _reaction(self, given: "MessageReactionUpdated") -> None:
        """👍 and 👎 tell how what was talked about came out."""
        user, people = given.user, self._people
        number = given.chat.id
        if user is None or user.id not in people or number not in people or (number > 0 and number != user.id):
            return
        before, now = _thumb(given.old_reaction), _thumb(given.new_reaction)
        if before == now:
            return
        owner = people[number]
        await self._mailbox.react(owner, self.name, chat_key(owner, number, None), str(given.message_id), now)


def _thumb(reactions: Sequence[object]) -> int | None:
    found = [messages.THUMBS.get(getattr(reaction, "emoji", "")) for reaction in reactions]
    return next((value for value in found if value), None)
