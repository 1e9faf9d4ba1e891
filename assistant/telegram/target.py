"""Where a reply goes: read from the ids a message was journalled with, so that it is known after a restart too.

A chat is journalled as owner/chat or owner/chat/thread; a message as id@user, a press of a button as id@user!press
with the id of the message that has the button, an edited message as id@user~when.
"""

import re
from dataclasses import dataclass

from memory.values import Received

_MESSAGE = re.compile(r"(?P<id>\w+)@(?P<user>\d+)(?:!(?P<press>.*)|~(?P<edit>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A chat, a thread of it, and the message that is answered."""

    owner: str
    chat: int
    thread: int | None
    user: int
    message: int | None  # None: there is none to point at
    pressed: bool

    @property
    def group(self) -> bool:
        return self.chat < 0


def chat_key(owner: str, chat: int, thread: int | None) -> str:
    """How a chat is journalled."""
    return f"{owner}/{chat}" + (f"/{thread}" if thread is not None else "")


def target_of(message: Received) -> Target:
    """Where the reply to a journalled message goes."""
    owner, chat, *thread = message.chat.split("/")
    found = _MESSAGE.fullmatch(message.message)
    assert found is not None
    return Target(
        owner=owner,
        chat=int(chat),
        thread=int(thread[0]) if thread else None,
        user=int(found["user"]),
        message=int(found["id"]) if found["id"].isdecimal() else None,
        pressed=found["press"] is not None,
    )
