"""What is said to the user: pieces of the model's reply, and sentences of our own."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from assistant.commands import unmarked
from assistant.talk import Talk
from memory.values import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A piece of the model's reply, or a sentence of our own."""

    text: str
    kind: Literal["piece", "notice", "command", "error"]
    saved: bool = False  # a notice that something is really stored
    verbatim: bool = False  # what a command says, to be copied: no Markdown

    @property
    def unformatted(self) -> str:
        """The text for where Markdown is shown as it is."""
        return unmarked(self.text) if self.kind == "command" and not self.verbatim else self.text


def notices(talk: Talk, turn: Turn) -> Iterator[Said]:
    """What the user has to know of what was just stored: saved, replaced, refused, unclear."""
    replaced = {fact.superseded_by: fact for fact in turn.superseded}
    for fact in turn.learned:
        before = replaced.get(fact.id)
        key, values = ("updated", {"before": before.fact}) if before else ("saved_undo", {})
        yield Said(text=talk.say(key, id=fact.id, fact=fact.fact, **values), kind="notice", saved=True)
    for new, old in turn.unclear:
        yield Said(text=talk.say("unclear", fact=new.fact, before=old.fact), kind="notice")
    for fact in turn.stale:
        yield Said(text=talk.say("stale", fact=fact.fact, id=fact.id), kind="notice")
    for kind in turn.refused:
        yield Said(text=talk.say("not_saved_secret", kind=kind), kind="notice")
    if turn.reminder_asked:
        yield Said(text=talk.say("reminders_not_there"), kind="notice")


def joined(parts: Iterable[Said]) -> list[Said]:
    """The same with neighbouring pieces in one."""
    whole: list[Said] = []
    for said in parts:
        if whole and said.kind == whole[-1].kind == "piece":
            whole[-1] = Said(text=whole[-1].text + said.text, kind="piece")
        else:
            whole.append(said)
    return whole


def to_json(parts: Iterable[Said]) -> str:
    """As the journal keeps it."""
    return json.dumps([asdict(said) for said in joined(parts)], ensure_ascii=False)


def from_json(text: str) -> list[Said]:
    """As the journal kept it."""
    return [Said(**part) for part in json.loads(text)]
