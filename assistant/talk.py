"""A talk: one chat with one person, and what has to be known between two of its messages."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.model import ChatModel
from assistant.reply import Reply
from memory import Memory
from memory.language import LanguagePack
from memory.values import Context, Received, Session, Turn

if TYPE_CHECKING:
    from assistant.said import Said


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult:
    """What a tool answered, and when."""

    at: datetime
    text: str


@dataclass(slots=True, kw_only=True)
class Talk:
    """One chat; changes from message to message."""

    memory: Memory
    model: ChatModel
    session: Session
    language: str  # of our own words
    follows: bool = True  # whether that becomes the language of the user's last message
    speaker: str | None = None
    data_dir: Path | None = None  # where logs and typed lines are, so that forgetting reaches them
    turn: Turn | None = None  # the last message of the user
    context: Context | None = None  # the last request
    reply: Reply | None = None  # and its answer
    answer_turn: int | None = None
    stages: dict[str, float] = field(default_factory=dict)  # seconds each stage of the last turn took
    saved: dict[str, int] = field(default_factory=dict)  # tokens the last request was spared, by what spared them
    used_tools: set[str] = field(default_factory=set)  # called in a way that was right: described in few words now
    format_known: bool = False  # whether the last call of a tool had the form that was asked for
    results: dict[str, "CachedResult"] = field(default_factory=dict)  # of tools, for an hour
    pending: list[dict[str, object]] = field(default_factory=list)  # calls and results that follow in the next request
    private: list[dict[str, str]] | None = None  # what was said while nothing is kept
    known_question: str | None = None  # the last message, if it was answered without a model
    unasked: bool = False  # whether the last answer needed no model
    forgetting: str | None = None  # the fact whose forgetting waits for a second word
    insisting: str | None = None  # a credential that is kept when the same is asked for once more
    facts_a_page: int = 0  # where the channel has buttons
    endless: bool = False  # the channel's chats are always there: nothing to quit
    entry: Received | None = None  # the message as the journal has it; None where there is no journal, in a terminal
    said: list["Said"] = field(default_factory=list)  # all that was said in answer to it so far

    @property
    def pack(self) -> LanguagePack:
        """The language pack of the talk."""
        return self.memory.packs[self.language]

    def say(self, key: str, **values: str) -> str:
        """One of our own sentences, in the user's language, or in English where a pack has no such sentence."""
        english = self.memory.packs["en"]
        text = (
            self.pack.answers.get(key) or self.pack.notices.get(key) or english.answers.get(key) or english.notices[key]
        )
        return text.format(**values)


async def open_talk(
    memory: Memory,
    model: ChatModel,
    channel: str,
    chat: str,
    *,
    language: str = "en",
    follows: bool = True,
    data_dir: Path | None = None,
    idle: timedelta | None = None,
) -> Talk:
    """Starts a session of a chat; where the last message got no answer and is not older than `idle`, goes on there."""
    left = await memory.unanswered(channel, chat, idle) if idle else None
    session = await (memory.resume_session if left else memory.open_session)(channel, chat, language)
    await memory.use_model(model.name)
    return Talk(
        memory=memory,
        model=model,
        session=session,
        language=language,
        follows=follows,
        data_dir=data_dir,
        turn=replace(left, language=await memory.session_language(session.id)) if left else None,
    )


async def resume_talk(
    memory: Memory, model: ChatModel, session: Session, *, language: str | None = None, data_dir: Path
) -> Talk:
    """Goes on with a session, without a language in that of what is said; what was not answered can be asked again."""
    await memory.use_model(model.name)
    last = await memory.last_turn(session.id)
    spoken = await memory.session_language(session.id)
    return Talk(
        memory=memory,
        model=model,
        session=session,
        language=language or spoken,
        follows=language is None,
        data_dir=data_dir,
        turn=replace(last, language=spoken) if last and last.role == "user" else None,
    )
