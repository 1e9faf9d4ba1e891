"""``olvido recall`` and ``olvido timeline``: what was said, found by a question or by its time."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from assistant.cli.options import load
from assistant.cli.output import one_line, print_table
from assistant.cli.person import look
from assistant.cli.shown import plain, print_data, shown_date

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings
    from memory import Memory
    from memory.values import RecallHit

KINDS = ("fact", "episode", "world", "experience", "opinion", "observation")
_WHEN = "2025-03-01, 30d (days ago; also w, m, y), or words: yesterday, last May"


def recall(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question, or a few words.")],
    k: Annotated[int, typer.Option("--k", "-k", metavar="N", min=1, max=1000, help="At most so many lines.")] = 10,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help=f"From then on: {_WHEN}.")] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Up to then, its end included.")] = None,
    kind: Annotated[list[str] | None, typer.Option(metavar="KIND", help=f"Only: {', '.join(KINDS)}.")] = None,
    entity: Annotated[str | None, typer.Option(metavar="NAME", help="Only lines about this name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """Find what was said: the best lines for a question, each with its date, score and reasons."""
    loaded = load(ctx)

    async def search(memory: "Memory") -> "list[RecallHit]":
        return await memory.recall(
            query,
            k,
            since=memory.moment(since) if since else None,
            until=memory.moment(until, end=True) if until else None,
            kinds=kind or None,
            entity=entity,
        )

    hits: list[RecallHit] = look(loaded, search, [])
    if as_json:
        print_data([plain(asdict(hit)) for hit in hits])
    elif not hits:
        typer.echo("Nothing found.")
    else:
        _print_hits(hits, loaded)


def timeline(
    ctx: typer.Context,
    since: Annotated[str | None, typer.Option("--from", metavar="WHEN", help=f"From then on: {_WHEN}.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="WHEN", help="Up to then, its end included.")] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="At most so many lines, the last ones.")
    ] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """What was said and is still kept, day by day."""
    loaded = load(ctx)

    async def read(memory: "Memory") -> "list[RecallHit]":
        bounds = (memory.moment(since) if since else None, memory.moment(until, end=True) if until else None)
        return await memory.timeline(*bounds, limit)

    hits: list[RecallHit] = look(loaded, read, [])
    if as_json:
        print_data([plain(asdict(hit)) for hit in hits])
        return
    if not hits:
        typer.echo("Nothing is kept of that time.")
    day = ""
    for hit in hits:
        date, clock = shown_date(hit.at, loaded).split(" ")
        if date != day:
            typer.echo(f"{date}:" if not day else f"\n{date}:")
            day = date
        typer.echo(f"  {clock}  {one_line(hit.text)}")


def _print_hits(hits: "Sequence[RecallHit]", loaded: "LoadedSettings") -> None:
    rows = [
        (shown_date(hit.at, loaded)[:10], hit.kind, hit.text, ", ".join(hit.entities), f"{hit.score:.2f}", hit.why)
        for hit in hits
    ]
    print_table(("date", "kind", "text", "names", "score", "why"), rows)
