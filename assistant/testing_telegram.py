"""A small, strict Bot API server on loopback: for tests and benchmarks, and to try the channel without Telegram.

It knows the methods the channel uses, rejects unknown or wrong parameters with the words of the real one, keeps what
users see, and fails as it is told: floods, refused entities, blocked bots, conflicts, cut connections, slow answers.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from assistant.testing_telegram_checks import Refusal, check, checked_entities, checked_keyboard, stripped

TOKEN = "123456:AAtesttokentesttokentesttokentest12"
BOT = {"id": 123456, "is_bot": True, "first_name": "Olvido", "username": "olvido_bot"}
LONGEST_POLL_SECONDS = 20.0
LONGEST_FILE_SECONDS = 300.0
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with the next call of a method ("*": of any but getUpdates)."""

    method: str
    status: int = 0
    description: str = "no"
    retry_after: int = 0
    cut: str = ""  # "before" or "after" the call has its effect
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that came in."""

    method: str
    params: Json
    at: float


@dataclass(slots=True, kw_only=True)
class Shown:
    """A message of the bot as the chat shows it, and all it ever showed."""

    id: int
    chat: int
    text: str
    entities: list[Json] = field(default_factory=list)
    keyboard: list[list[Json]] = field(default_factory=list)
    thread: int | None = None
    reply_to: int | None = None
    deleted: bool = False
    versions: list[str] = field(default_factory=list)

    @property
    def labels(self) -> list[str]:
        return [button["text"] for row in self.keyboard for button in row]


class BotServer:
    """Speaks the Bot API; `say` and its like are what users do, `chat` is what they see."""

    def __init__(self, *, token: str = TOKEN, drafts: bool = True) -> None:
        self.token = token
        self.drafts = drafts  # whether the server knows sendMessageDraft
        self.calls: list[Call] = []
        self.rejected: list[tuple[str, str]] = []  # method and why: what a correct client never causes
        self.impatient: list[str] = []  # calls made before a flood was over
        self.users: dict[int, Json] = {}
        self.chats: dict[int, Json] = {}
        self.blocked: set[int] = set()
        self.moved: dict[int, int] = {}  # groups that became supergroups
        self.messages: dict[tuple[int, int], Shown] = {}
        self.by_users: dict[tuple[int, int], Json] = {}
        self.shown_drafts: list[tuple[int, int, str]] = []
        self.answers: list[Json] = []  # to presses of buttons
        self.menus: dict[str, list[Json]] = {}
        self.files: dict[str, bytes] = {}
        self.files_flow = threading.Event()  # cleared: files do not come
        self.files_flow.set()
        self.asked_for: set[str] = set()  # addresses, where we are the proxy
        self._updates: deque[Json] = deque()
        self._faults: deque[Fault] = deque()
        self._floods: dict[int, float] = {}
        self._next_update, self._next_message, self._polls = 1000, 1, 0
        self._changed = threading.Condition()
        self._closing = False
        self._server = _Listener(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="bot-server")

    @property
    def base_url(self) -> str:
        """The address to configure."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # -- what users do

    def user(self, number: int, name: str = "Ana", language: str = "en") -> Json:
        """An account, with its private chat with the bot."""
        known: Json = {"id": number, "is_bot": False, "first_name": name, "language_code": language}
        self.users[number] = known
        self.chats[number] = {"id": number, "type": "private", "first_name": name}
        return known

    def group(self, number: int, title: str = "Family", *, forum: bool = False) -> Json:
        """A group the bot is in."""
        self.chats[number] = {"id": number, "type": "supergroup", "title": title, "is_forum": forum}
        return self.chats[number]

    def migrate(self, old: int, new: int, user: int) -> None:
        """A group becomes a supergroup: another chat, with ids of its own, which both are told of."""
        group = self.chats[old]
        self.chats[new] = {**group, "id": new, "type": "supergroup"}
        messages = [
            {**self._message(user, old), "migrate_to_chat_id": new},
            {**self._message(user, new), "migrate_from_chat_id": old},
        ]
        self.moved[old] = new
        for message in messages:
            self.update({"message": message})

    def say(self, user: int, text: str | None = None, *, chat: int | None = None, **more: Any) -> int:
        """A user sends a message; its id."""
        message = self._message(user, chat if chat is not None else user)
        if text is not None:
            message |= {"text": text, "entities": found_entities(text)}
        message |= more
        self.by_users[message["chat"]["id"], message["message_id"]] = message
        self.update({"message": message})
        return int(message["message_id"])

    def edit(self, user: int, number: int, text: str, *, chat: int | None = None) -> None:
        """A user edits a message."""
        before = self.by_users[chat if chat is not None else user, number]
        edited = {**before, "text": text, "entities": found_entities(text), "edit_date": int(time.time())}
        self.update({"edited_message": edited})

    def press(self, user: int, shown: Shown, label: str, *, data: str | None = None) -> None:
        """A user presses a button."""
        found = [button for row in shown.keyboard for button in row if label in button["text"]]
        message = {**self._of_bot(shown), "reply_markup": {"inline_keyboard": shown.keyboard}}
        with self._changed:
            self._next_update += 1
            query = {"id": f"q{self._next_update}", "from": self.users[user], "chat_instance": "1", "message": message}
        self.update({"callback_query": {**query, "data": data or found[0]["callback_data"]}})

    def react(self, user: int, shown: Shown, emoji: str, before: str = "") -> None:
        """A user reacts to a message of the bot; "" takes a reaction back."""
        reactions = [[{"type": "emoji", "emoji": one}] if one else [] for one in (before, emoji)]
        given = {"chat": self.chats[shown.chat], "message_id": shown.id, "user": self.users[user], "date": 1}
        self.update({"message_reaction": {**given, "old_reaction": reactions[0], "new_reaction": reactions[1]}})

    def document(self, name: str, data: bytes, mime: str = "text/plain") -> Json:
        """A file to send along: say(user, document=...)."""
        number = f"file{len(self.files)}"
        self.files[number] = data
        return {
            "file_id": number,
            "file_unique_id": number,
            "file_name": name,
            "mime_type": mime,
            "file_size": len(data),
        }

    def update(self, content: Json, *, times: int = 1) -> None:
        """Something for the bot; more than once: delivered again under another number."""
        with self._changed:
            for _ in range(times):
                self._next_update += 1
                self._updates.append({"update_id": self._next_update, **content})
            self._changed.notify_all()

    # -- what users see

    def chat(self, number: int, thread: int | None = None) -> list[Shown]:
        """The messages of the bot in a chat that are there now."""
        with self._changed:
            found = [shown for shown in self.messages.values() if shown.chat == number and not shown.deleted]
        return sorted((one for one in found if thread is None or one.thread == thread), key=lambda one: one.id)

    def until(self, true: Callable[[], object], seconds: float = 60.0) -> None:
        """Waits for something to become true."""
        with self._changed:
            if not self._changed.wait_for(true, seconds):
                raise TimeoutError(f"It did not come to that: {self.calls[-5:]}, rejected {self.rejected[-3:]}")

    def fail(self, *faults: Fault) -> None:
        """What goes wrong next."""
        with self._changed:
            self._faults.extend(faults)

    def count(self, method: str) -> int:
        """How often a method was called."""
        with self._changed:
            return sum(call.method == method for call in self.calls)

    @property
    def unconfirmed(self) -> int:
        """Updates the bot has not confirmed."""
        with self._changed:
            return len(self._updates)

    # -- the server

    def note(self, method: str) -> None:
        """Something was asked for that is no method."""
        with self._changed:
            self.calls.append(Call(method=method, params={}, at=time.monotonic()))
            self._changed.notify_all()

    def handle(self, method: str, params: Json) -> tuple[int, Json, str]:
        """Status, body, and whether the connection is to be cut."""
        fault = self._fault(method, params)
        if fault and fault.delay_seconds:
            time.sleep(fault.delay_seconds)
        if fault and fault.cut == "before":
            return 0, {}, "cut"
        if fault and fault.status:
            extra = {"parameters": {"retry_after": fault.retry_after}} if fault.retry_after else {}
            return fault.status, _error(fault.status, fault.description) | extra, ""
        try:
            result = self._call(method, params)
        except Refusal as refusal:
            if not refusal.expected:
                self.rejected.append((method, refusal.description))
            return refusal.status, _error(refusal.status, refusal.description) | refusal.more, ""
        finally:
            with self._changed:
                self._changed.notify_all()
        return 200, {"ok": True, "result": result}, "cut" if fault and fault.cut == "after" else ""

    def _fault(self, method: str, params: Json) -> Fault | None:
        with self._changed:
            self.calls.append(Call(method=method, params=params, at=time.monotonic()))
            self._changed.notify_all()
            chat = int(params.get("chat_id") or 0)
            if time.monotonic() < self._floods.get(chat, 0.0):
                self.impatient.append(method)
            for fault in self._faults:
                if fault.method == method or (fault.method == "*" and method != "getUpdates"):
                    self._faults.remove(fault)
                    if fault.retry_after and chat:
                        self._floods[chat] = time.monotonic() + fault.retry_after - 0.05
                    return fault
        return None

    def _call(self, method: str, raw: Json) -> Any:
        known = getattr(self, f"_do_{method}", None)
        if known is None or (method == "sendMessageDraft" and not self.drafts):
            raise Refusal(404, "Not Found", expected=True)
        params = check(method, raw)
        if method == "getUpdates":
            return known(params)
        with self._changed:
            return known(params)

    def _do_getMe(self, _: Json) -> Json:
        return {**BOT, "can_join_groups": True, "can_read_all_group_messages": False, "supports_inline_queries": False}

    def _do_getUpdates(self, params: Json) -> list[Json]:
        wanted = params.get("allowed_updates")
        with self._changed:
            self._polls += 1
            mine = self._polls
            self._changed.notify_all()
            while params.get("offset") and self._updates and self._updates[0]["update_id"] < params["offset"]:
                self._updates.popleft()
            self._changed.wait_for(
                lambda: self._closing or self._polls != mine or self._updates,
                min(float(params.get("timeout", 0)), LONGEST_POLL_SECONDS),
            )
            if self._polls != mine:
                raise Refusal(409, "Conflict: terminated by other getUpdates request", expected=True)
            found = [one for one in self._updates if wanted is None or set(one) & set(wanted)]
            return found[: params.get("limit", 100)]

    def _do_sendMessage(self, params: Json) -> Json:
        chat = self._reachable(params["chat_id"])
        text, spans = stripped(params["text"], checked_entities(params["text"], params.get("entities", [])))
        keyboard = checked_keyboard(params.get("reply_markup"))
        thread = params.get("message_thread_id")
        if thread is not None and not chat.get("is_forum"):
            raise Refusal(400, "Bad Request: message thread not found")
        points = params.get("reply_parameters") or {}
        there = (chat["id"], points.get("message_id")) in {**self.messages, **self.by_users}
        if points and not there and not points.get("allow_sending_without_reply"):
            raise Refusal(400, "Bad Request: message to be replied not found")
        shown = Shown(id=self._number(), chat=chat["id"], text=text, entities=spans, keyboard=keyboard, thread=thread)
        shown.reply_to = points.get("message_id") if there else None
        shown.versions.append(text)
        self.messages[chat["id"], shown.id] = shown
        return self._of_bot(shown)

    def _do_editMessageText(self, params: Json) -> Json:
        self._reachable(params["chat_id"])
        shown = self._own(params)
        text, spans = stripped(params["text"], checked_entities(params["text"], params.get("entities", [])))
        keyboard = checked_keyboard(params.get("reply_markup"))
        if (text, spans, keyboard) == (shown.text, shown.entities, shown.keyboard):
            raise Refusal(400, "Bad Request: message is not modified", expected=True)
        shown.text, shown.entities, shown.keyboard = text, spans, keyboard
        shown.versions.append(text)
        return self._of_bot(shown)

    def _do_deleteMessage(self, params: Json) -> bool:
        shown = self._own(params, doing="delete")
        shown.deleted = True
        return True

    def _do_sendMessageDraft(self, params: Json) -> bool:
        chat = self._reachable(params["chat_id"])
        if chat["type"] != "private":
            raise Refusal(400, "Bad Request: method is available only in private chats")
        if not params["draft_id"]:
            raise Refusal(400, "Bad Request: DRAFT_ID_INVALID")
        checked_entities(params["text"], params.get("entities", []))
        self.shown_drafts.append((chat["id"], params["draft_id"], params["text"]))
        return True

    def _do_sendChatAction(self, params: Json) -> bool:
        self._reachable(params["chat_id"])
        if params["action"] != "typing":
            raise Refusal(400, "Bad Request: wrong parameter action in request")
        return True

    def _do_answerCallbackQuery(self, params: Json) -> bool:
        self.answers.append(params)
        return True

    def _do_setMyCommands(self, params: Json) -> bool:
        for command in params["commands"]:
            name, text = command["command"], command["description"]
            if not (1 <= len(name) <= 32 and name.isascii() and name.islower()) or not 1 <= len(text) <= 256:
                raise Refusal(400, "Bad Request: BOT_COMMAND_INVALID")
        self.menus[params.get("language_code", "")] = params["commands"]
        return True

    def _do_getFile(self, params: Json) -> Json:
        if params["file_id"] not in self.files:
            raise Refusal(400, "Bad Request: invalid file_id")
        number = params["file_id"]
        size = len(self.files[number])
        return {"file_id": number, "file_unique_id": number, "file_size": size, "file_path": f"documents/{number}"}

    # -- pieces

    def _number(self) -> int:
        with self._changed:
            self._next_message += 1
            return self._next_message

    def _message(self, user: int, chat: int) -> Json:
        sender = self.users[user]
        return {"message_id": self._number(), "date": int(time.time()), "chat": self.chats[chat], "from": sender}

    def _of_bot(self, shown: Shown) -> Json:
        message = {"message_id": shown.id, "date": 1, "chat": self.chats[shown.chat], "from": BOT, "text": shown.text}
        topic = {"message_thread_id": shown.thread, "is_topic_message": True} if shown.thread is not None else {}
        return message | topic

    def _reachable(self, chat: int) -> Json:
        if chat in self.moved:
            more = {"parameters": {"migrate_to_chat_id": self.moved[chat]}}
            raise Refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", expected=True, more=more)
        if chat not in self.chats:
            raise Refusal(400, "Bad Request: chat not found")
        if chat in self.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user", expected=True)
        return self.chats[chat]

    def _own(self, params: Json, doing: str = "edit") -> Shown:
        shown = self.messages.get((params["chat_id"], params["message_id"]))
        if shown is None or shown.deleted:
            if (params["chat_id"], params["message_id"]) in self.by_users:
                raise Refusal(400, f"Bad Request: message can't be {doing}ed", expected=doing == "edit")
            raise Refusal(400, f"Bad Request: message to {doing} not found", expected=True)
        return shown


def found_entities(text: str) -> list[Json]:
    """The entities Telegram finds in what users write: commands and mentions."""
    found, place = [], 0
    for word in text.split(" "):
        kind = "bot_command" if word.startswith("/") else "mention" if word.startswith("@") else ""
        if kind and len(word) > 1:
            length = len(word.rstrip(",:.!?"))
            found.append({"type": kind, "offset": len(text[:place].encode("utf-16-le")) // 2, "length": length})
        place += len(word) + 1
    return found


def telegram_settings(server: BotServer, people: dict[int, str], **more: object) -> dict[str, str]:
    """The environment of an assistant that talks to such a server, and is in a hurry."""
    given: dict[str, object] = {
        "token": server.token,
        "base_url": server.base_url,
        "draft_seconds": 0.01,
        "edit_seconds": 0.01,
        "group_edit_seconds": 0.01,
        "retry_seconds": 0.05,
        "retry_max_seconds": 0.2,
        "timeout_seconds": 10,
        **{f"people__{number}": owner for number, owner in people.items()},
        **more,
    }
    return {f"OLVIDO_TELEGRAM__{name.upper()}": str(value) for name, value in given.items()}


def _error(status: int, description: str) -> Json:
    return {"ok": False, "error_code": status, "description": description}


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, bot: BotServer) -> None:
        self.bot = bot
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing to stderr: clients that are killed are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        bot = self._bot
        prefix = f"/file/bot{bot.token}/documents/"
        path = unquote(self.path)
        data = bot.files.get(path.removeprefix(prefix)) if path.startswith(prefix) else None
        bot.note("file")
        bot.files_flow.wait(LONGEST_FILE_SECONDS)
        self._send(404 if data is None else 200, data if data is not None else b"no", "application/octet-stream")

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"] or 0)
        body = self.rfile.read(length)
        if len(body) < length:  # killed in the middle of it
            self.close_connection = True
            return
        address = urlsplit(self.path)  # whole when we are asked as a proxy
        self._bot.asked_for.add(address.netloc)
        token, _, method = unquote(address.path).removeprefix("/bot").partition("/")
        if token != self._bot.token:
            self._send(401, json.dumps(_error(401, "Unauthorized")).encode())
            return
        params = {name: values[-1] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}
        status, answer, cut = self._bot.handle(method, params)
        if cut:
            self.close_connection = True
            return
        self._send(status, json.dumps(answer).encode())

    @property
    def _bot(self) -> BotServer:
        assert isinstance(self.server, _Listener)
        return self.server.bot

    def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to stderr."""
