"""``olvido episodes``: what happened, how it went; search it, look at it, take it out."""

import asyncio
import sys
from dataclasses import asdict
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Any, cast
from zoneinfo import ZoneInfo

import typer

from assistant.cli.forget import forget_facts
from assistant.cli.options import load
from assistant.cli.output import one_line, print_table
from assistant.cli.person import change, look
from assistant.cli.shown import plain, print_data, quoted, shown_date
from assistant.errors import AssistantError
from assistant.people import copies_of
from assistant.traces import scrub

if TYPE_CHECKING:
    from pathlib import Path

    from assistant.settings import LoadedSettings
    from memory import Memory
    from memory.episodes import ForgottenEpisode
    from memory.values import Consolidation, Episode, EpisodeHit, Spoken

PHASES = ("active", "mature", "aged", "archived", "deleted")
OUTCOMES = ("success", "partial", "failure", "unknown")

app = typer.Typer(help="See, search and forget what happened and how it went.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="Id of an episode, such as e12.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")]
Limit = Annotated[int, typer.Option("-k", metavar="N", min=1, max=1000, help="At most so many.")]


@app.command("list")
def list_(
    ctx: typer.Context,
    phase: Annotated[str | None, typer.Option(metavar="PHASE", help=f"One of {', '.join(PHASES)}.")] = None,
    k: Limit = 20,
    as_json: Json = False,
) -> None:
    """The newest episodes; a closed topic is one."""
    if phase is not None and phase not in PHASES:
        raise AssistantError(f"There is no phase “{one_line(phase)}”; it is one of {', '.join(PHASES)}.")
    loaded = load(ctx)

    async def work(memory: "Memory") -> "list[tuple[Episode, str]]":
        return [(one, memory.episodes.phase(one)) for one in await memory.episodes.list(cast(Any, phase), k)]

    found: list[tuple[Episode, str]] = look(loaded, work, [])
    if as_json:
        print_data([_data(one, phase=state) for one, state in found])
    elif found:
        rows = [(*_short(one, loaded), one.task_type, one.domain, state) for one, state in found]
        print_table(("id", "when", "topic", "outcome", "type", "domain", "phase"), rows)
    else:
        typer.echo(
            "There are no such episodes." if phase else "There are no episodes yet: a topic becomes one when it ends.",
            err=True,
        )


@app.command()
def show(
    ctx: typer.Context,
    episode_id: Id,
    trace: Annotated[bool, typer.Option("--trace", help="Also what was said, as long as that is kept.")] = False,
    as_json: Json = False,
) -> None:
    """Everything about one episode."""
    loaded = load(ctx)

    async def work(memory: "Memory") -> "tuple[Episode, str, Any, list[Spoken]]":
        episode = await memory.episodes.read(episode_id)
        said = await memory.episodes.trace(episode_id) if trace else []
        return episode, memory.episodes.phase(episode), await memory.episodes.consolidation(episode_id), said

    episode, phase, merged, said = change(loaded, work)
    if as_json:
        more: dict[str, object] = {"phase": phase}
        more |= {"trace": [plain(asdict(one)) for one in said]} if trace else {}
        more |= _merged_data(*merged) if merged else {}
        print_data(_data(episode, **more))
        return
    print_table(("field", "value"), _fields(episode, phase, merged, loaded))
    for one in said:
        typer.echo(f"{shown_date(one.at, loaded)} {one_line(one.speaker)}: {one_line(one.content)}")
    if trace and not said:
        days = loaded.settings.limits.episode_trace_days
        typer.echo(
            f"What was said is not kept any more: the limit is {days} days (limits.episode_trace_days).", err=True
        )


@app.command()
def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="TEXT", help="What it was about, in your own words.")] = "",
    failures: Annotated[bool, typer.Option("--failures", help="Only what went wrong, likest first.")] = False,
    domain: Annotated[str | None, typer.Option(metavar="DOMAIN", help="work, personal, projects, ...")] = None,
    task: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="fix, plan, write, choose, ...")] = None,
    outcome: Annotated[str | None, typer.Option(metavar="OUTCOME", help=f"One of {', '.join(OUTCOMES)}.")] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="A tool that was used.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="A tag, as show prints them.")] = None,
    entity: Annotated[str | None, typer.Option(metavar="NAME", help="Somebody or something named in it.")] = None,
    since: Annotated[str | None, typer.Option(metavar="DATE", help="Not before that day, such as 2026-01-31.")] = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help="Not after that day.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Also what is older than a year.")] = False,
    k: Limit = 5,
    as_json: Json = False,
) -> None:
    """Find episodes by what they were about, by what they are, by time, or failures like the one described."""
    loaded = load(ctx)
    first, last = _day(since, loaded), _day(until, loaded)

    async def work(memory: "Memory") -> "list[EpisodeHit]":
        return await memory.episodes.search(
            query,
            k=k,
            failures=failures,
            domain=domain,
            task_type=task,
            outcome=cast(Any, outcome),
            tool=tool,
            tag=tag,
            entity=entity,
            since=first,
            until=last + timedelta(days=1) if last else None,
            archived=archived,
        )

    hits: list[EpisodeHit] = look(loaded, work, [])
    if as_json:
        print_data(
            [
                _data(hit.episode, phase=hit.phase, way=hit.way, score=hit.score, parts=dict(hit.parts), why=hit.why)
                for hit in hits
            ]
        )
    elif hits:
        rows = [(*_short(hit.episode, loaded), f"{hit.score:.3f}", hit.why) for hit in hits]
        print_table(("id", "when", "topic", "outcome", "score", "why"), rows)
    else:
        hint = "" if archived else " Older ones are searched with --archived."
        typer.echo(f"Nothing was found.{hint}", err=True)


@app.command()
def forget(
    ctx: typer.Context,
    episode_id: Id,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    with_facts: Annotated[bool, typer.Option("--with-facts", help="Also the facts learnt in it.")] = False,
    including_backups: Annotated[
        bool, typer.Option("--including-backups", help="Remove it from older copies of the memory too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove an episode and all that was said in it. This cannot be undone."""
    loaded = load(ctx)
    plan = change(loaded, lambda memory: memory.episodes.preview_forget(episode_id))
    if not as_json:
        _show_plan(plan, with_facts, loaded)
    if not yes:
        _ask(episode_id)
    said = change(loaded, lambda memory: memory.episodes.trace(episode_id))
    complete = change(loaded, lambda memory: _forget(memory, episode_id, with_facts))
    said_there = [one.text.removeprefix(f"{one.speaker}: ") for one in plan.statements]
    scrub(loaded.settings.data_dir, [*(one.content for one in said), *said_there])
    copies = [copy for copy in copies_of(loaded.settings) if copy.exists()]
    if including_backups:
        copies = _uncleaned(copies, plan, with_facts, loaded)
    if as_json:
        facts = [fact.id for fact in plan.facts]
        counts = {"statements": len(plan.statements), "messages": plan.traces}
        forgotten: dict[str, object] = {"forgotten": [one.id for one in plan.episodes], **counts}
        forgotten |= {"facts_forgotten" if with_facts else "facts_kept": facts, "complete": complete}
        print_data({**forgotten, "older_copies": [*map(str, copies)]})
    else:
        typer.echo(f"Forgotten: {', '.join(one.id for one in plan.episodes)}.")
    if not complete:
        typer.echo("Another program is reading the memory: the last bytes go when it has finished.", err=True)
    if copies and not as_json:
        hint = "delete them" if including_backups else "delete them, or use --including-backups the next time"
        typer.echo(f"Older copies of the memory may still hold it; {hint}:", err=True)
        typer.echo("\n".join(f"  {copy}" for copy in copies), err=True)


@app.command()
def delete(ctx: typer.Context, episode_id: Id) -> None:
    """Take an episode out of every search; it can be restored for some time."""
    loaded = load(ctx)
    change(loaded, lambda memory: memory.episodes.delete(episode_id))
    days = loaded.settings.limits.episode_deleted_days
    typer.echo(f"Deleted. For {days} days it can be brought back with: olvido episodes restore {episode_id}")


@app.command()
def restore(ctx: typer.Context, episode_id: Id) -> None:
    """Bring back an episode that was deleted."""
    episode = change(load(ctx), lambda memory: memory.episodes.restore(episode_id))
    typer.echo(f"Restored {episode.id}: {one_line(episode.topic)}")


@app.command()
def split(ctx: typer.Context, episode_id: Id) -> None:
    """Take a consolidated episode apart: the ones it stands for are found again, each by itself."""
    originals = change(load(ctx), lambda memory: memory.episodes.separate(episode_id))
    typer.echo(f"Each stands for itself again: {', '.join(one.id for one in originals)}.")


async def _forget(memory: "Memory", episode_id: str, with_facts: bool) -> bool:
    """Whether no byte of it is left in the file."""
    gone = await memory.episodes.forget(episode_id)
    return await forget_facts(memory, gone.facts if with_facts else (), gone.complete)


def _uncleaned(
    copies: "list[Path]", plan: "ForgottenEpisode", with_facts: bool, loaded: "LoadedSettings"
) -> "list[Path]":
    """Takes an episode out of every older copy; returns those where that could not be done."""
    from memory.copies import forget_in_copy
    from memory.errors import EngineError

    left = []
    said = plan.facts if with_facts else ()
    for number, copy in enumerate(copies, 1):
        typer.echo(f"Cleaning copy {number} of {len(copies)}: {copy.name}", err=True)
        try:
            asyncio.run(forget_in_copy(copy, said, plan.spans, limits=loaded.settings.limits))
        except EngineError as exc:
            typer.echo(str(exc), err=True)
            left.append(copy)
    return left


def _show_plan(plan: "ForgottenEpisode", with_facts: bool, loaded: "LoadedSettings") -> None:
    typer.echo("This will be forgotten:")
    for one in plan.episodes:
        typer.echo(f"  {one.id}, {shown_date(one.ended_at, loaded)}: {one_line(one.text)}")
    for statement in plan.statements:
        typer.echo(f"  {one_line(statement.text)}")
    if plan.traces:
        typer.echo(f"  and {plan.traces} messages, word for word")
    if plan.facts:
        typer.echo("with the facts learnt in it:" if with_facts else "The facts learnt in it stay (or --with-facts):")
        for fact in plan.facts:
            typer.echo(f"  {quoted(fact)}")
    typer.echo("It cannot be undone.")


def _ask(episode_id: str) -> None:
    if not sys.stdin.isatty():
        raise AssistantError(
            "Nothing was forgotten: there is no terminal to ask on. Add -y to go ahead without asking."
        )
    if not typer.confirm(f"Forget {episode_id}?", err=True):
        raise AssistantError("Nothing was forgotten.")


def _day(text: str | None, loaded: "LoadedSettings") -> datetime | None:
    if text is None:
        return None
    try:
        day = min(max(date.fromisoformat(text), date(1, 1, 4)), date(9999, 12, 27))  # with a day before and after
    except ValueError:
        raise AssistantError(f"“{one_line(text)}” is no day; write it like 2026-01-31.") from None
    return datetime.combine(day, time(), tzinfo=ZoneInfo(loaded.settings.timezone)).astimezone(UTC)


def _fields(episode: "Episode", phase: str, merged: Any, loaded: "LoadedSettings") -> list[tuple[str, str]]:
    """Every field, one a line."""
    fields = asdict(episode)
    fields |= {
        name: shown_date(value, loaded)
        for name in ("began_at", "ended_at", "accessed_at", "deleted_at")
        if (value := fields[name])
    }
    fields |= {name: ", ".join(fields[name]) for name in ("tools", "tags", "entities")}
    notes = fields.pop("notes")
    rows = [(name.replace("_", " "), str(value)) for name, value in fields.items() if value not in ("", None)]
    rows.append(("phase", phase))
    for note in notes:
        pieces = {name: value if isinstance(value, str) else " / ".join(value) for name, value in note.items()}
        rows.append(("summary", "; ".join(f"{name}: {value}" for name, value in pieces.items() if value)))
    if merged:
        made, _ = merged
        rows.append(("statistics", ", ".join(f"{name} {value:g}" for name, value in made.statistics.items())))
        rows += [
            ("stands for", f"{ref}: {' / '.join(lines) or 'nothing of its own'}") for ref, lines in made.variations
        ]
    return rows


def _short(episode: "Episode", loaded: "LoadedSettings") -> tuple[str, ...]:
    return episode.id, shown_date(episode.ended_at, loaded), episode.topic, episode.outcome


def _data(episode: "Episode", **more: object) -> dict[str, Any]:
    return plain({**asdict(episode), **more})


def _merged_data(made: "Consolidation", originals: "list[Episode]") -> dict[str, object]:
    variations = {ref: list(lines) for ref, lines in made.variations}
    originals_data = [_data(one, variations=variations.get(one.id, [])) for one in originals]
    return {"representative": made.representative, "statistics": dict(made.statistics), "originals": originals_data}
