"""``olvido facts``: see, correct, keep, take out and bring in what is remembered."""

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from assistant.cli import forget, transfer
from assistant.cli.options import load
from assistant.cli.output import one_line, print_table
from assistant.cli.person import change, complete_ids, look, work_on
from assistant.cli.shown import (
    event_data,
    fact_data,
    fades_at,
    print_data,
    print_events,
    print_fact,
    print_facts,
    quoted,
    shown_date,
    stale_at,
)
from assistant.errors import AssistantError

if TYPE_CHECKING:
    from memory import Memory
    from memory.learn import Learned
    from memory.values import Fact, FactEvent

DOMAINS = ("work", "preferences", "decisions", "personal", "projects")
STATES = ("active", "explicit-only", "stale", "superseded", "all")
CONFIDENCES = ("high", "medium", "low")

app = typer.Typer(help="See, correct, keep and forget what is remembered.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="Id of a fact, such as f12.", autocompletion=complete_ids)]
Json = Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")]
DomainOption = Annotated[
    str | None,
    typer.Option(metavar="DOMAIN", help=f"One of {', '.join(DOMAINS)}.", autocompletion=lambda: list(DOMAINS)),
]
ConfidenceHelp = typer.Option(
    metavar="LEVEL", help=f"One of {', '.join(CONFIDENCES)}.", autocompletion=lambda: list(CONFIDENCES)
)
Insist = Annotated[bool, typer.Option("--insist", help="Store it even if it looks like a credential.")]


@app.command("list")
def list_(
    ctx: typer.Context,
    state: Annotated[
        str,
        typer.Option(metavar="STATE", help=f"One of {', '.join(STATES)}.", autocompletion=lambda: list(STATES)),
    ] = "active",
    domain: DomainOption = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Only facts in which this stands.")] = None,
    as_json: Json = False,
) -> None:
    """The facts that are remembered, those confirmed last first."""
    for name, value, allowed in (("state", state, STATES), ("domain", domain, DOMAINS)):
        if value is not None and value not in allowed:
            raise AssistantError(f"There is no {name} “{one_line(value)}”; it is one of {', '.join(allowed)}.")
    loaded = load(ctx)
    wanted = cast(Any, None if state == "all" else state)

    async def work(memory: "Memory") -> "list[Fact]":
        return await memory.facts.list(wanted, domain=cast(Any, domain), text=text)

    facts: list[Fact] = look(loaded, work, [])
    if as_json:
        print_data([fact_data(fact) for fact in facts])
    elif facts:
        print_facts(facts, loaded)
    else:
        everything = (state, domain, text) == ("all", None, None)
        hint = "Add one with: olvido facts add TEXT" if everything else "See all with: olvido facts list --state all"
        typer.echo(f"There are no {'facts' if everything else 'such facts'}. {hint}", err=True)


@app.command()
def show(ctx: typer.Context, fact_id: Id, as_json: Json = False) -> None:
    """Everything about one fact: its words, where they come from, when it fades, what it replaced."""
    loaded = load(ctx)

    async def work(memory: "Memory") -> "tuple[Fact, list[Fact]]":
        return await memory.facts.get(fact_id), await memory.facts.chain(fact_id)

    fact, chain = change(loaded, work)
    if as_json:
        print_data(fact_data(fact, fades_at=fades_at(fact, loaded), chain=[fact_data(other) for other in chain]))
    else:
        print_fact(fact, chain, loaded)


@app.command()
def add(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The fact, in quotes.")],
    domain: DomainOption = None,
    confidence: Annotated[str, ConfidenceHelp] = "high",
    pin: Annotated[bool, typer.Option("--pin", help="Put it into every request.")] = False,
    insist: Insist = False,
    as_json: Json = False,
) -> None:
    """Remember a fact; one it contradicts gives way."""
    loaded = load(ctx)
    words = _words(text)

    async def work(memory: "Memory") -> "Learned":
        return await memory.facts.learn(
            words, cast(Any, domain), cast(Any, confidence), pinned=True if pin else None, insist=insist
        )

    learned = work_on(loaded, work)
    fact = (*learned.facts, *learned.confirmed)[0]
    if as_json:
        superseded = [fact_data(old) for old in learned.superseded]
        print_data({"fact": fact_data(fact), "known": bool(learned.confirmed), "superseded": superseded})
        return
    known = bool(learned.confirmed)
    typer.echo(f"Known already, and confirmed, as {quoted(fact)}" if known else f"Saved as {quoted(fact)}")
    if not known and len(fact.fact) < len(" ".join(words.split())):
        typer.echo("It was too long for one fact and was cut there.")
    for old in learned.superseded:
        typer.echo(f"It replaces {quoted(old)}")
    for _, old in learned.unclear:
        typer.echo(f"It may contradict {quoted(old)}")
    typer.echo(f"Undo with: olvido facts undo {fact.id}")


@app.command()
def edit(
    ctx: typer.Context,
    fact_id: Id,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The new words, in quotes.")] = None,
    domain: DomainOption = None,
    confidence: Annotated[str | None, ConfidenceHelp] = None,
    insist: Insist = False,
    as_json: Json = False,
) -> None:
    """Correct the words, domain or confidence of a fact; it keeps its id."""
    if text is None and domain is None and confidence is None:
        raise AssistantError("Say what to change: the new words, --domain or --confidence.")
    words = None if text is None else _words(text)

    async def work(memory: "Memory") -> "list[Fact]":
        changes = {"domain": cast(Any, domain), "confidence": cast(Any, confidence)}
        return [await memory.facts.edit(fact_id, words, **changes, insist=insist)]

    _print_changed(change(load(ctx), work), "Changed", as_json)


@app.command()
def pin(
    ctx: typer.Context,
    fact_id: Id,
    off: Annotated[bool, typer.Option("--off", help="Do not put it into every request any more.")] = False,
    as_json: Json = False,
) -> None:
    """Put a fact into every request."""

    async def work(memory: "Memory") -> "list[Fact]":
        return [await memory.facts.pin(fact_id, not off)]

    _print_changed(change(load(ctx), work), "Unpinned" if off else "Pinned", as_json)


@app.command()
def confirm(
    ctx: typer.Context,
    fact_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of facts.", autocompletion=complete_ids)],
    as_json: Json = False,
) -> None:
    """Keep facts: their age starts anew."""

    async def work(memory: "Memory") -> "list[Fact]":
        found = {fact.id: fact for fact in [await memory.facts.get(fact_id) for fact_id in fact_ids]}
        for fact in found.values():  # before any of them is changed
            if fact.status != "current":
                raise AssistantError(f"{fact.id} was replaced by {fact.superseded_by}; confirm that one.")
        return [await memory.facts.confirm(fact_id) for fact_id in found]

    _print_changed(change(load(ctx), work), "Confirmed", as_json)


@app.command()
def undo(
    ctx: typer.Context,
    fact_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Id of a fact; without, of any.", autocompletion=complete_ids),
    ] = None,
    as_json: Json = False,
) -> None:
    """Revert the last change of a fact, or of any. What was forgotten cannot come back."""

    async def work(memory: "Memory") -> "list[Fact]":
        return await memory.facts.undo(fact_id)

    facts = change(load(ctx), work)
    if as_json:
        print_data([fact_data(fact) for fact in facts])
        return
    for fact in facts:
        typer.echo(f"Taken back {quoted(fact)}" if fact.status == "undone" else f"Again {quoted(fact)}")


@app.command()
def history(
    ctx: typer.Context,
    fact_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Id of a fact; all without.", autocompletion=complete_ids)
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the newest so many.")] = None,
    as_json: Json = False,
) -> None:
    """What was done to a fact and its chain, or to all facts, oldest first."""
    loaded = load(ctx)

    async def work(memory: "Memory") -> "list[FactEvent]":
        return await memory.facts.history(fact_id, limit)

    nothing: list[FactEvent] = []
    events = look(loaded, work, nothing) if fact_id is None else change(loaded, work)
    if as_json:
        print_data([event_data(event) for event in events])
    else:
        print_events(events, loaded)


@app.command()
def due(ctx: typer.Context, as_json: Json = False) -> None:
    """What is about to fade unless you confirm it, soonest first."""
    loaded = load(ctx)

    async def work(memory: "Memory") -> "list[Fact]":
        return await memory.facts.due()

    facts: list[Fact] = look(loaded, work, [])
    if as_json:
        print_data([fact_data(fact, stale_at=stale_at(fact, loaded)) for fact in facts])
    elif facts:
        rows = [(fact.id, fact.fact, fact.domain, shown_date(stale_at(fact, loaded), loaded)) for fact in facts]
        print_table(("id", "fact", "domain", "fades"), rows)
        typer.echo("Keep one with: olvido facts confirm ID", err=True)
    else:
        typer.echo("Nothing is about to fade.", err=True)


def _words(text: str) -> str:
    """What was typed; a terminal of another encoding types what cannot be stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise AssistantError("That text is not valid UTF-8. Set the terminal to UTF-8 and type it again.") from None
    return text


def _print_changed(facts: "list[Fact]", what: str, as_json: bool) -> None:
    if as_json:
        print_data([fact_data(fact) for fact in facts])
        return
    for fact in facts:
        typer.echo(f"{what} {quoted(fact)} ({fact.domain}, {fact.confidence})")
    hint = facts[0].id if len(facts) == 1 else "ID"
    typer.echo(f"Undo with: olvido facts undo {hint}")


app.command("forget")(forget.forget)
app.command("export")(transfer.export)
app.command("import")(transfer.import_)
