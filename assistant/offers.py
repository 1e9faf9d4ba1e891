"""Offers: what can be done with one tap about something just said, as commands; a channel without buttons leaves
them out.

An offer from a list carries the page it came from (“/forget f3 #2”), so that there is a way back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.talk import Talk
    from memory.values import Fact

_PAGE = re.compile(r"(?:^|\s+)#(\d{1,6})\s*$")


@dataclass(frozen=True, slots=True)
class Offer:
    """What it is called, and the command it stands for; those of one row are shown side by side."""

    label: str
    command: str
    row: int = 0


def undo(talk: "Talk", fact_id: str) -> tuple[Offer, ...]:
    """Under something saved."""
    return (Offer(talk.say("offer_undo"), f"/undo {fact_id}"),)


def keep_or_replace(talk: "Talk", old_id: str, new_id: str, *, replaced: bool) -> tuple[Offer, ...]:
    """Under a contradiction: the old one holds, or the new one does (`replaced`: it already does)."""
    new = f"/keep {new_id}" if replaced else f"/replace {old_id} {new_id}"
    return Offer(talk.say("offer_keep_old"), f"/undo {new_id}"), Offer(talk.say("offer_replace"), new)


def keep_or_forget(talk: "Talk", fact_id: str) -> tuple[Offer, ...]:
    """Under a fact that fades."""
    return Offer(talk.say("offer_keep"), f"/keep {fact_id}"), Offer(talk.say("offer_forget"), f"/forget {fact_id}")


def really_forget(talk: "Talk", fact_id: str, page: int | None) -> tuple[Offer, ...]:
    """Under what is about to go for good."""
    mark = f" #{page}" if page else ""
    return (Offer(talk.say("offer_forget_for_good"), f"/forget {fact_id}{mark}"), *back(talk, page))


def back(talk: "Talk", page: int | None) -> tuple[Offer, ...]:
    """The way back to a list."""
    return (Offer(talk.say("offer_back"), f"/facts #{page}"),) if page else ()


def page_of(argument: str) -> tuple[str, int | None]:
    """What a command is given, and the page it came from."""
    found = _PAGE.search(argument)
    return (argument[: found.start()].strip(), max(1, int(found[1]))) if found else (argument.strip(), None)


def paged(
    talk: "Talk", facts: Sequence["Fact"], words: str, page: int
) -> tuple[Sequence["Fact"], str, tuple[Offer, ...]]:
    """One page of facts, which one it is, and the offers: keep or forget each, the pages before and after.

    All of them where there are no buttons.
    """
    size = talk.facts_a_page
    if not size:
        return facts, "", ()
    pages = max(1, -(-len(facts) // size))
    page = min(page, pages)
    shown = facts[(page - 1) * size : page * size]
    offers = [
        offer
        for row, fact in enumerate(shown)
        for offer in (
            Offer(f"✓ {talk.say('offer_keep')} {fact.id}", f"/keep {fact.id} #{page}", row),
            Offer(f"✕ {talk.say('offer_forget')} {fact.id}", f"/forget {fact.id} #{page}", row),
        )
    ]
    prefix = f"/facts {words} ".replace("  ", " ")
    if page > 1:
        offers.append(Offer("◀", f"{prefix}#{page - 1}", size))
    if page < pages:
        offers.append(Offer("▶", f"{prefix}#{page + 1}", size))
    return shown, f"{page}/{pages}" if pages > 1 else "", tuple(offers)
