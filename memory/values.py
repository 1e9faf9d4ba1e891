"""The values the engine hands out: frozen, and ignorant of storage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Domain = Literal["work", "preferences", "decisions", "personal", "projects"]
Confidence = Literal["high", "medium", "low"]
FactKind = Literal["statement", "instruction", "decision", "declaration", "change"]
Role = Literal["user", "assistant"]
FactState = Literal["active", "explicit-only", "stale", "superseded"]
STATES: tuple[FactState, ...] = ("active", "explicit-only", "stale", "superseded")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDraft:
    """A fact as a message states it, before it is stored."""

    fact: str
    domain: Domain
    confidence: Confidence
    quote: str
    language: str
    kind: FactKind = "declaration"
    attribute: str = ""
    single: bool = False
    polarity: int = 0
    key: str = ""
    value: str = ""
    replaces: str = ""
    pinned: bool = False
    signalled: bool = False
    secret: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something the user said that holds until it fades, is corrected or forgotten (F1)."""

    id: str
    domain: Domain
    fact: str
    confidence: Confidence
    created_at: datetime
    last_confirmed_at: datetime
    source: Literal["explicit", "inferred"]
    quote: str
    turn_id: int | None
    language: str
    status: Literal["current", "superseded", "undone"]
    superseded_by: str | None
    pinned: bool
    kind: FactKind
    attribute: str
    key: str
    value: str
    single: bool
    polarity: int
    state: FactState = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvent:
    """One thing done to a fact; `fact` is its text then, None when it was forgotten since."""

    number: int
    id: str
    at: datetime
    action: str
    fact: str | None
    undone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenFact:
    """A fact picked for a request, and why."""

    fact: Fact
    score: float
    why: str
    tokens: int
    since: datetime | None = None  # when it was last said, if that is a while ago


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sitting of a chat."""

    id: int
    channel: str
    chat: str
    opened_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message (W4) and what was learnt from it."""

    id: int
    session_id: int
    turn_number: int
    role: Role
    speaker: str
    content: str
    timestamp: datetime
    token_count: int
    semantic_continuity: float | None = None
    topic_shift: bool = False
    summarized_at: datetime | None = None
    language: str = "en"
    chat_language: str = "en"  # of the chat after it: our own words follow that
    learned: tuple[Fact, ...] = ()
    confirmed: tuple[Fact, ...] = ()
    superseded: tuple[Fact, ...] = ()
    unclear: tuple[tuple[Fact, Fact], ...] = ()
    stale: tuple[Fact, ...] = field(default=())
    refused: tuple[str, ...] = ()
    reminder_asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message as a channel delivered it, and how far it got; `said` is the reply to send, as JSON."""

    id: int
    channel: str
    chat: str
    message: str
    speaker: str | None
    content: str
    private: bool
    received_at: datetime
    begun: bool = False
    turn_id: int | None = None
    said: str = "[]"
    answered: bool = False
    sent: bool = False
    corrects: str | None = None  # the message it takes the place of, when it was edited


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """What became of the facts of a message when it was edited."""

    learned: tuple[Fact, ...] = ()
    withdrawn: tuple[Fact, ...] = ()


# model, summary: a model was asked; known, cached, repeated: none was
RequestKind = Literal["model", "summary", "known", "cached", "repeated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one answer cost, and what it did not; numbers only."""

    at: datetime
    kind: RequestKind
    session_id: int | None = None
    model: str = ""  # the one that answered; none where none was asked
    tokens: int = 0
    history_tokens: int = 0  # what the whole history of the session would have cost
    prompt_tokens: int = 0  # as the provider counted them; 0: not told
    cached_tokens: int = 0
    reply_tokens: int = 0
    cost: float | None = None
    cut: bool = False
    sections: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)  # seconds
    saved: Mapping[str, int] = field(default_factory=dict)  # tokens by what saved them


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model answered, and may be answered again for a day without it (C1, D1)."""

    id: int
    question: str
    language: str
    words: str  # of the question, in the form in which questions are compared
    answer: str
    session_id: int
    turn_id: int
    at: datetime
    served: bool = False
    facts: frozenset[str] = frozenset()  # the ids of those that belong to the question


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that went wrong while a message was answered (L2): one line, none of it said by anybody."""

    at: datetime
    source: str  # the name of a tool, or "model"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A segment of turns as keys and values (S1); never prose, never changed."""

    id: str
    topic: str
    discussed: tuple[str, ...]
    outcome: str
    decisions: tuple[str, ...]
    open_questions: tuple[str, ...]
    rendered: str
    token_count: int
    language: str
    at: datetime


StatementKind = Literal["world", "experience", "opinion", "observation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a compressed turn said, as a short line that stands alone (M1)."""

    id: str
    kind: StatementKind
    text: str
    speaker: str
    session_id: int
    turn_id: int
    language: str
    entities: tuple[str, ...]
    at: datetime
    context: tuple[str, ...] = ()  # stems of what was said around it: it is found by them, they are never shown
    gist: bytes = b""  # equal for lines that say the same (M3)
    read_on: int = 0  # the last day of use on which it was stored or read (M2)


Section = Literal["static", "tools", "summaries", "window", "recalled", "facts", "message"]
SECTIONS: tuple[Section, ...] = ("static", "tools", "summaries", "window", "recalled", "facts", "message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One stored row in a request, verbatim, and why it is there."""

    id: str
    text: str
    rank: int
    why: str
    tokens: int
    at: datetime | None = None  # when it was said, or last confirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionReport:
    """What one section of a request holds."""

    name: Section
    tokens: int
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that did not make it into a request, and why."""

    section: Section
    id: str
    why: str
    tokens: int = 0  # what it would have cost, where leaving it out saves that


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A request, ready to be sent, and the account of it."""

    messages: list[dict[str, Any]]
    tokens: int
    provider_tokens: int
    sections: dict[Section, SectionReport]
    left_out: tuple[LeftOut, ...]
    message_cut: bool = False
    tools: tuple[Mapping[str, object], ...] = ()  # those to offer: the ones asked for, as far as there is room


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderScale:
    """A model's own tokens per cl100k token (B6): smoothed, and the most that was ever needed."""

    factor: float
    peak: float
    observations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallHit:
    """Something found in memory, and how."""

    id: str
    kind: str
    text: str
    at: datetime
    entities: tuple[str, ...]
    score: float
    why: str
    source: str


Outcome = Literal["success", "partial", "failure", "unknown"]
Phase = Literal["active", "mature", "aged", "archived", "deleted"]
Way = Literal["semantic", "structured", "hybrid", "temporal", "failures"]
OUTCOMES: tuple[Outcome, ...] = ("success", "partial", "failure", "unknown")
PHASES: tuple[Phase, ...] = ("active", "mature", "aged", "archived", "deleted")
TASK_TYPES = ("fix", "plan", "write", "choose", "learn", "find", "talk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One summary as part of its episode (S3)."""

    topic: str
    discussed: tuple[str, ...] = ()
    outcome: str = ""
    decisions: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The turns of an episode: where and when they were said."""

    session_id: int
    first_turn: int
    last_turn: int
    began_at: datetime
    ended_at: datetime

    @property
    def place(self) -> tuple[int, int, int]:
        """Session, first and last turn."""
        return self.session_id, self.first_turn, self.last_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A topic that is closed (E1): what was written once, and where it stands in its life."""

    id: str
    session_id: int
    channel: str
    chat: str
    first_turn: int
    last_turn: int
    turns: int
    began_at: datetime
    ended_at: datetime
    language: str
    topic: str
    text: str
    notes: tuple[Note, ...]
    domain: str
    task_type: str
    trouble: str = ""
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    outcome: Outcome = "unknown"
    accesses: int = 0
    accessed_at: datetime | None = None
    merged_into: str | None = None
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """What a consolidated episode stands for (E5)."""

    representative: str
    statistics: Mapping[str, float]
    variations: tuple[tuple[str, tuple[str, ...]], ...]  # of each original what the others have not
    accesses: int  # those of the originals when they were consolidated


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeHit:
    """An episode that was found, how, and its score taken apart (E3)."""

    episode: Episode
    phase: Phase
    way: Way
    score: float
    parts: Mapping[str, float]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One message of a trace."""

    turn_id: int
    role: Role
    speaker: str
    at: datetime
    content: str
