"""What the Bot API accepts: parameters, entities and keyboards, checked as strictly as it is documented."""

import json
import re
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
MOST_UNITS, MOST_DATA_BYTES, MOST_LABEL = 4096, 64, 64
REQUIRED = True
PARAMETERS: Mapping[str, Mapping[str, tuple[type, bool]]] = {
    "getMe": {},
    "getUpdates": {
        "offset": (int, False),
        "limit": (int, False),
        "timeout": (int, False),
        "allowed_updates": (list, False),
    },
    "sendMessage": {
        "chat_id": (int, REQUIRED),
        "text": (str, REQUIRED),
        "message_thread_id": (int, False),
        "entities": (list, False),
        "link_preview_options": (dict, False),
        "disable_notification": (bool, False),
        "reply_parameters": (dict, False),
        "reply_markup": (dict, False),
    },
    "editMessageText": {
        "chat_id": (int, REQUIRED),
        "message_id": (int, REQUIRED),
        "text": (str, REQUIRED),
        "entities": (list, False),
        "link_preview_options": (dict, False),
        "reply_markup": (dict, False),
    },
    "deleteMessage": {"chat_id": (int, REQUIRED), "message_id": (int, REQUIRED)},
    "sendMessageDraft": {
        "chat_id": (int, REQUIRED),
        "draft_id": (int, REQUIRED),
        "text": (str, REQUIRED),
        "message_thread_id": (int, False),
        "entities": (list, False),
    },
    "sendChatAction": {"chat_id": (int, REQUIRED), "action": (str, REQUIRED), "message_thread_id": (int, False)},
    "answerCallbackQuery": {"callback_query_id": (str, REQUIRED), "text": (str, False), "show_alert": (bool, False)},
    "setMyCommands": {"commands": (list, REQUIRED), "language_code": (str, False), "scope": (dict, False)},
    "getFile": {"file_id": (str, REQUIRED)},
}
ENTITIES = frozenset(
    [
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "code",
        "pre",
        "text_link",
        "blockquote",
        "expandable_blockquote",
    ]
)
_LINK = re.compile(r"(?:https?|tg|ton|mailto|tel):\S+", re.IGNORECASE)


class Refusal(Exception):
    """An error of the API; `expected`: also a correct client may get it."""

    def __init__(
        self, status: int, description: str, *, expected: bool = False, more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.expected = expected
        self.more = dict(more or {})


def check(method: str, raw: Mapping[str, str]) -> Json:
    """The parameters of a call as values."""
    known = PARAMETERS[method]
    params: Json = {}
    for name, text in raw.items():
        if name not in known:
            raise Refusal(400, f"Bad Request: unknown parameter {name}")
        kind = known[name][0]
        try:
            value = text if kind is str else json.loads(text)
        except ValueError:
            raise Refusal(400, f"Bad Request: can't parse {name}") from None
        if type(value) is not kind:
            raise Refusal(400, f"Bad Request: wrong parameter {name}")
        params[name] = value
    for name, (_, required) in known.items():
        if required and name not in params:
            raise Refusal(400, f"Bad Request: parameter {name} is required")
    return params


def units(text: str) -> int:
    """The length in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def checked_entities(text: str, given: list[Json]) -> list[Json]:
    """The entities of a text, or the reason to refuse it."""
    if not text.strip():
        raise Refusal(400, "Bad Request: message text is empty")
    whole = units(text)
    if whole > MOST_UNITS:
        raise Refusal(400, "Bad Request: message is too long")
    encoded = text.encode("utf-16-le")
    starts = {place for place in range(0, len(encoded), 2) if not 0xDC <= encoded[place + 1] <= 0xDF}
    for entity in given:
        _check_entity(entity, whole)
        for place in (entity["offset"], entity["offset"] + entity["length"]):
            if place < whole and 2 * place not in starts:
                raise Refusal(400, f"Bad Request: entity at {place} begins or ends in a middle of a UTF-16 symbol")
    for one in given:
        for other in given:
            _check_pair(one, other)
    if len(given) > 100:
        raise Refusal(400, "Bad Request: too many entities")
    return given


def _check_entity(entity: Json, whole: int) -> None:
    extra = {"text_link": {"url"}, "pre": {"language"}}.get(entity.get("type", ""), set())
    if entity.get("type") not in ENTITIES or set(entity) - {"type", "offset", "length"} - extra:
        raise Refusal(400, f"Bad Request: can't parse entities: unsupported {entity}")
    if entity["length"] <= 0 or entity["offset"] < 0 or entity["offset"] + entity["length"] > whole:
        raise Refusal(400, "Bad Request: can't parse entities: out of the text")
    if entity["type"] == "text_link" and not _LINK.fullmatch(entity.get("url", "")):
        raise Refusal(400, "Bad Request: can't parse entities: wrong URL")


def _check_pair(one: Json, other: Json) -> None:
    """Entities are nested or apart. Code holds nothing and stands in nothing but a quote; nor do links with links or
    quotes with quotes."""
    first, last = one["offset"], one["offset"] + one["length"]
    begin, end = other["offset"], other["offset"] + other["length"]
    if one is other or end <= first or last <= begin:
        return
    if not (first <= begin and end <= last) and not (begin <= first and last <= end):
        raise Refusal(400, "Bad Request: can't parse entities: they overlap")
    kinds = {one["type"], other["type"]}
    quotes = [entity for entity in (one, other) if entity["type"] == "blockquote"]
    if len(kinds) > 1 and any(entity["length"] >= max(one["length"], other["length"]) for entity in quotes):
        return
    if len(kinds) == 1 or kinds & {"pre", "code"}:
        raise Refusal(400, f"Bad Request: can't parse entities: {one['type']} and {other['type']} in one place")


def stripped(text: str, given: list[Json]) -> tuple[str, list[Json]]:
    """A message without white space around it, as it is shown."""
    shift = units(text) - units(text.lstrip())
    shown = text.strip()
    moved = []
    for entity in given:
        begin = max(0, entity["offset"] - shift)
        end = min(units(shown), entity["offset"] + entity["length"] - shift)
        if end > begin:
            moved.append({**entity, "offset": begin, "length": end - begin})
    return shown, moved


def checked_keyboard(markup: Json | None) -> list[list[Json]]:
    """The rows of buttons under a message."""
    if markup is None:
        return []
    rows: list[list[Json]] = markup["inline_keyboard"]
    for row in rows:
        for button in row:
            if not 1 <= len(button["callback_data"].encode()) <= MOST_DATA_BYTES:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
            if not 1 <= len(button["text"]) <= MOST_LABEL:
                raise Refusal(400, "Bad Request: BUTTON_TEXT_INVALID")
    return rows
