"""Facts and their history as people and programs see them."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from assistant.cli.output import one_line, print_table

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings
    from memory.values import Fact, FactEvent


def print_data(value: object) -> None:
    """JSON for programs, in which nothing can steer the terminal it may end in."""
    from memory.portable import dump_json

    print(dump_json(value))


def shown_date(moment: datetime, loaded: "LoadedSettings") -> str:
    """A moment in the time zone configured."""
    return f"{moment.astimezone(ZoneInfo(loaded.settings.timezone)):%Y-%m-%d %H:%M}"


def quoted(fact: "Fact") -> str:
    """A fact in a sentence to the user."""
    return f"{fact.id}: {one_line(fact.fact)}"


def print_facts(facts: "Sequence[Fact]", loaded: "LoadedSettings") -> None:
    """A table, one row a fact."""
    columns = ("id", "fact", "domain", "state", "confidence", "pinned", "confirmed")
    print_table(
        columns,
        [
            (
                fact.id,
                fact.fact,
                fact.domain,
                fact.state,
                fact.confidence,
                "pinned" if fact.pinned else "",
                shown_date(fact.last_confirmed_at, loaded),
            )
            for fact in facts
        ],
    )


def stale_at(fact: "Fact", loaded: "LoadedSettings") -> datetime:
    """When a fact that nobody confirms becomes stale."""
    return fact.last_confirmed_at + timedelta(days=loaded.settings.limits.fact_stale_days)


def fades_at(fact: "Fact", loaded: "LoadedSettings") -> datetime | None:
    """When a fact next loses its place; None where it has none to lose."""
    from memory import decay

    if fact.state == "active":
        return decay.fades_at(fact, loaded.settings.limits)
    return stale_at(fact, loaded) if fact.state == "explicit-only" else None


def print_fact(fact: "Fact", chain: "Sequence[Fact]", loaded: "LoadedSettings") -> None:
    """Every field, one a line."""
    fields: dict[str, object] = asdict(fact)
    fields |= {name: shown_date(getattr(fact, name), loaded) for name in ("created_at", "last_confirmed_at")}
    fields |= {"turn_id": "none: not learnt in a conversation" if fact.turn_id is None else fact.turn_id}
    fading = fades_at(fact, loaded)
    fields["fades_at"] = shown_date(fading, loaded) if fading else f"it is {fact.state} already"
    rows = [(name.replace("_", " "), _cell(value)) for name, value in fields.items() if value not in ("", None)]
    for other in chain:
        if other.id != fact.id:
            rows.append(("chain", f"{quoted(other)} ({other.state}, {shown_date(other.created_at, loaded)})"))
    print_table(("field", "value"), rows)


def print_events(events: "Sequence[FactEvent]", loaded: "LoadedSettings") -> None:
    """A table, one row an act."""
    rows = []
    for event in events:
        text = event.fact if event.fact is not None else "(forgotten)"
        action = f"{event.action} (undone)" if event.undone and event.fact is not None else event.action
        rows.append((shown_date(event.at, loaded), event.id, action, text))
    print_table(("when", "id", "action", "fact"), rows)


def fact_data(fact: "Fact", **more: object) -> dict[str, Any]:
    """A fact for JSON; dates in UTC."""
    return plain({**asdict(fact), **more})


def event_data(event: "FactEvent") -> dict[str, Any]:
    """An act for JSON."""
    return plain(asdict(event))


def plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields with dates as text."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()}


def _cell(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
