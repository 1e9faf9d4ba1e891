"""What a model answered, as values."""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

# length: the reply reached its limit; cut: the connection broke, or the server failed, after the first words;
# stopped: the user had enough
Finish = Literal["stop", "length", "cut", "stopped", "tool_calls", "content_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool the model wants to use; the arguments are JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole answer; `model` is its name in the settings, `notes` are sentences for the user. 0 means not told."""

    text: str
    finish_reason: Finish
    model: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    reply_tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReply(Generic[T]):
    """An answer in the form that was asked for, and what it cost."""

    value: T
    model: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    reply_tokens: int = 0
