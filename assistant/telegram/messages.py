"""What came in, read: whether it is for us, whose words it holds, and what of it cannot be read at all."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assistant.commands import is_command
from memory.language import well_formed

if TYPE_CHECKING:
    from telegram import Chat, Document, Message, MessageEntity, MessageOrigin, User

LONGEST_NAME = 80  # characters
LONGEST_QUOTE = 4_000  # characters of what is replied to
NOT_PASSED_ON = "(Telegram does not pass its words on.)"
TEXT_TYPES = re.compile(r"text/.+|application/(?:json|xml|toml|yaml|x-yaml|x-sh|javascript|sql|x-tex|rtf\b.*|x-subrip)")
TEXT_NAMES = re.compile(
    r".+\.(?:txt|md|markdown|rst|org|tex|csv|tsv|json|jsonl|xml|html?|css|ya?ml|toml|ini|cfg|conf|log|diff|patch|srt|vtt"
    r"|py|js|ts|c|h|cc|cpp|hpp|rs|go|java|kt|rb|php|pl|sh|sql|r|lua|swift)",
    re.IGNORECASE,
)
THUMBS = {"👍": 1, "👎": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a message: the sender's own, and those of others with where they are from."""

    text: str
    quoted: str = ""
    quoted_from: str = ""


def thread_of(message: "Message") -> int | None:
    """The topic a message belongs to; a thread of replies is none."""
    return message.message_thread_id if message.is_topic_message else None


def message_key(message: "Message", user: int) -> str:
    """How a message is journalled: pictures sent together are one."""
    together = f"g{message.media_group_id}" if message.media_group_id and not message.caption else message.message_id
    return f"{together}@{user}"


def is_addressed(message: "Message", me: "User") -> bool:
    """Whether a message in a group is for us: it names us, answers us, or is a command not meant for another bot."""
    text = message.text or message.caption or ""
    replied = message.reply_to_message
    if replied is not None and replied.from_user is not None and replied.from_user.id == me.id:
        return not _topic_begins(replied)
    if is_command(text) and message.forward_origin is None and message.via_bot is None:
        _, at, bot = text.split(maxsplit=1)[0].partition("@")
        return not at or bot.lower() == (me.username or "").lower()
    return any(_is_us(entity.type, words, entity.user, me) for entity, words in _entities(message))


def words_of(message: "Message", me: "User") -> Words:
    """What was said; what is forwarded or another bot's is not the sender's words, and a command quotes nothing."""
    text = _without_us(message, me).strip()
    if message.forward_origin is not None:
        return Words(text="", quoted=text, quoted_from=f"Forwarded from {forwarded_from(message)}")
    if message.via_bot is not None:
        return Words(text="", quoted=text, quoted_from=f"Sent through the bot {one_line(message.via_bot.name)}")
    if is_command(text):
        return Words(text=text)
    quoted, where = _replied_to(message, me)
    return Words(text=text, quoted=quoted[:LONGEST_QUOTE], quoted_from=where) if quoted.strip() else Words(text=text)


def _replied_to(message: "Message", me: "User") -> tuple[str, str]:
    """The words a message replies to, or the part of them that is quoted, and whose they are."""
    chosen = message.quote.text if message.quote else ""
    replied, elsewhere = message.reply_to_message, message.external_reply
    if replied is not None and not _topic_begins(replied):
        return chosen or replied.text or replied.caption or "", f"In reply to {_sender(replied, me)}"
    if elsewhere is not None:  # Telegram passes on only what was marked of it
        return chosen or NOT_PASSED_ON, f"In reply to {_said_by(elsewhere.origin, elsewhere.chat)}, in another chat"
    return chosen, "In reply to somebody"


def forwarded_from(message: "Message") -> str:
    """Who said what was forwarded, as far as Telegram tells."""
    return _said_by(message.forward_origin, message.chat)


def _said_by(origin: "MessageOrigin | None", otherwise: "Chat | None") -> str:
    user, chat = getattr(origin, "sender_user", None), getattr(origin, "sender_chat", None)
    found = user.full_name if user else getattr(origin, "sender_user_name", None)
    place = chat or getattr(origin, "chat", None) or otherwise
    return one_line(found or (place.effective_name if place else "") or "somebody")


def unreadable(message: "Message") -> str:
    """The sentence about what a message holds beside text; empty when there is nothing, or it is a text document."""
    document = message.document
    if document is not None and not message.animation:
        return "" if is_text_document(document) else "no_file"
    if message.photo:
        return "no_photo"
    if message.voice or message.audio:
        return "no_voice"
    if message.video or message.video_note or message.animation:
        return "no_video"
    return "no_other" if _other(message) else ""


def is_text_document(document: "Document") -> bool:
    """Whether a file is likely to be text."""
    kind, name = document.mime_type or "", document.file_name or ""
    return bool(TEXT_TYPES.fullmatch(kind.lower()) or TEXT_NAMES.fullmatch(name))


def decoded(data: bytes) -> str | None:
    """The text of a file; None when it is none."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def one_line(name: str) -> str:
    """A name as it can stand in a line."""
    return " ".join(well_formed(name).split())[:LONGEST_NAME]


def _other(message: "Message") -> bool:
    given = (
        message.sticker,
        message.location,
        message.contact,
        message.poll,
        message.dice,
        message.story,
        message.game,
    )
    return any(part is not None for part in (*given, message.venue, message.paid_media))


def _topic_begins(replied: "Message") -> bool:
    return replied.forum_topic_created is not None


def _sender(message: "Message", me: "User") -> str:
    if message.from_user is not None and message.from_user.id == me.id:
        return "the assistant"
    return one_line(message.from_user.full_name if message.from_user else message.chat.effective_name or "somebody")


def _entities(message: "Message") -> "list[tuple[MessageEntity, str]]":
    try:
        found = message.parse_entities() if message.text else message.parse_caption_entities()
    except UnicodeEncodeError:  # half a character: nobody knows what their places are
        return []
    return list(found.items())


def _is_us(kind: str, words: str, user: "User | None", me: "User") -> bool:
    if kind == "mention":
        return words.lower() == f"@{me.username}".lower()
    return kind == "text_mention" and user is not None and user.id == me.id


def _without_us(message: "Message", me: "User") -> str:
    """The text without our name where we are called by it."""
    text = message.text or message.caption or ""
    if message.chat.type == "private" or not me.username:
        return text
    return re.sub(rf"(?<![\w@])@{re.escape(me.username)}\b[,:]?\s*", "", text, flags=re.IGNORECASE)
