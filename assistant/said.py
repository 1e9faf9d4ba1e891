"""What is said to the user: pieces of the model's reply, and sentences of our own."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from assistant import offers
from assistant.commands import unmarked
from assistant.offers import Offer
from assistant.talk import Talk
from memory.values import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A piece of the model's reply, or a sentence of our own."""

    text: str
    kind: Literal["piece", "notice", "command", "error"]
    saved: bool = False  # a notice that something is really stored
    verbatim: bool = False  # what a command says, to be copied: no Markdown
    offers: tuple[Offer, ...] = ()  # what can be done about it with one tap

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
        text = talk.say(key, id=fact.id, fact=fact.fact, **values)
        choice = offers.keep_or_replace(talk, before.id, fact.id, replaced=True) if before else ()
        yield Said(text=text, kind="notice", saved=True, offers=choice or offers.undo(talk, fact.id))
    for new, old in turn.unclear:
        choice = offers.keep_or_replace(talk, old.id, new.id, replaced=False)
        yield Said(text=talk.say("unclear", fact=new.fact, before=old.fact), kind="notice", offers=choice)
    for fact in turn.stale:
        text = talk.say("stale", fact=fact.fact, id=fact.id)
        yield Said(text=text, kind="notice", offers=offers.keep_or_forget(talk, fact.id))
    for kind in turn.refused:
        yield Said(text=talk.say("not_saved_secret", kind=kind), kind="notice")
    if turn.reminder_asked:
        yield Said(text=talk.say("reminders_not_there"), kind="notice")


async def due_notice(talk: Talk) -> Said | None:
    """A fact about to fade, offered for keeping (F12)."""
    fact = await talk.memory.facts.offer_due()
    if fact is None:
        return None
    text = talk.say("due", fact=fact.fact, date=f"{fact.last_confirmed_at:%Y-%m-%d}")
    return Said(text=text, kind="notice", offers=offers.keep_or_forget(talk, fact.id))


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
    return [
        Said(**{**part, "offers": tuple(Offer(**offer) for offer in part.get("offers", ()))})
        for part in json.loads(text)
    ]
