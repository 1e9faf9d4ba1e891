"""Channels: the ways by which messages come in and replies go out. One small Protocol, and what it speaks of.

A channel hands each message in with `Mailbox.take`, which returns once the message is on the disk: only then may the
channel tell its server that it has it. Replies come back through `stream`, for as long as they are being made, and
`send`, when they are whole. What is delivered again, in either direction, has the same ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from assistant.said import Said
from memory.values import Received


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """A message as it came in. `message` is the channel's own id of it, `owner` the person whose memory it is for.

    `quoted` are words that are not the user's own: a forwarded message, a document, what is replied to. They are
    shown to the model as quoted lines, and teach nothing.
    """

    owner: str
    chat: str
    message: str
    text: str
    speaker: str | None = None
    quoted: str = ""
    quoted_from: str = ""
    corrects: str = ""  # the id of the message this one, edited, takes the place of
    known_only: bool = False  # passed over unless the message it corrects was taken
    answer: str = ""  # the sentence that is all there is to say: what came cannot be read
    language: str = ""  # of sentences, where nothing was said in the chat yet

    @property
    def content(self) -> str:
        """The words of the user, then the quoted ones, every line of them marked."""
        lines = [f"{self.quoted_from}:"] if self.quoted_from else []
        marked = "\n".join(f"> {line}" for text in (*lines, self.quoted) for line in text.splitlines())
        return "\n\n".join(part for part in (self.text, marked if self.quoted.strip() else "") if part)


class Mailbox(Protocol):
    """Where a channel hands in what it receives."""

    async def take(self, channel: str, message: Inbound) -> bool:
        """Returns once the message is on the disk; whether it is new. Raises EngineError when it cannot be kept."""

    def wake(self, owner: str, channel: str, chat: str) -> None:
        """Somebody can be reached again: what waits for this chat is sent."""

    async def places(self, owner: str, message: Received) -> dict[int, str]:
        """Where the parts of a reply are, by the channel's own ids, as far as they were noted."""

    async def note(self, owner: str, message: Received, part: int, place: str | None) -> None:
        """Notes where a part of a reply will be, before it is put there: sent anew it takes the same place."""

    async def knows(self, owner: str, message: Received, place: str) -> bool:
        """Whether a place in the same chat is that of any reply."""

    async def react(self, owner: str, channel: str, chat: str, place: str, value: int | None) -> None:
        """What somebody thinks of the reply at a place: 1, -1, or None when they take it back."""


class Channel(Protocol):
    """One way in and out; `name` tells it apart in the journal."""

    name: str

    async def run(self, mailbox: Mailbox) -> None:
        """Receives until cancelled; to return, or to raise, ends the daemon."""

    async def stream(self, message: Received, said: Said) -> None:
        """Shows a piece of a reply in the making, if there is a way; raises nothing, and may be called anew for the
        same message after a restart."""

    async def send(self, message: Received, reply: Sequence[Said]) -> None:
        """Delivers a whole reply, in place of what was streamed; returns once it arrived.

        Raises NotDelivered when it cannot be delivered now; it will be asked again. Returns where it never can be.
        An empty reply ends the matter without a word.
        """
