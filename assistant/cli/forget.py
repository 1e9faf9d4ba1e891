"""``olvido facts forget``: shows exactly what goes, asks, and removes every trace of it."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assistant.cli.options import load
from assistant.cli.output import one_line
from assistant.cli.person import change, complete_ids
from assistant.cli.shown import print_data, print_facts, shown_date
from assistant.errors import AssistantError
from assistant.people import copies_of, person_file
from assistant.traces import files_below, files_holding, scrub

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings
    from memory import Memory
    from memory.values import Fact, Turn

PATIENCE = (0.1, 0.2, 0.4, 0.8, 1.5)  # seconds between attempts while another program is reading the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes, every wording it ever had, and the older copies in which it still stands."""

    facts: "tuple[Fact, ...]"
    turns: "tuple[Turn, ...]"
    lines: tuple[str, ...]  # statements and summaries of what was said
    wordings: "tuple[Fact, ...]"  # as they are and as they ever were
    texts: tuple[str, ...]
    copies: tuple[Path, ...]


def forget(
    ctx: typer.Context,
    fact_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of facts.", autocompletion=complete_ids)],
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    including_backups: Annotated[
        bool, typer.Option("--including-backups", help="Remove it from older copies of the memory too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """Remove facts and every trace of their words. This cannot be undone."""
    loaded = load(ctx)
    plan = change(loaded, lambda memory: _plan(memory, fact_ids, loaded))
    if not as_json:
        _show(plan, including_backups, loaded)
    if not yes:
        _ask(plan)
    complete = change(loaded, lambda memory: forget_facts(memory, plan.facts))
    lines = scrub(loaded.settings.data_dir, plan.texts)
    problems = _clean_copies(plan, loaded) if including_backups else []
    left = files_holding(plan.texts, _own_files(loaded))
    if as_json:
        facts = [{"id": fact.id} for fact in plan.facts]  # what was forgotten is not told once more
        counts = {"turns_cut": len(plan.turns), "lines_removed": len(plan.lines), "log_lines": lines}
        print_data({"forgotten": facts, **counts, "left_in": [*map(str, left)]})
    else:
        typer.echo(f"Forgotten: {', '.join(fact.id for fact in plan.facts)}.")
    _tell_what_is_left(left, complete, problems, loaded)
    if problems:
        raise typer.Exit(1)


async def _plan(memory: "Memory", fact_ids: Sequence[str], loaded: "LoadedSettings") -> Plan:
    from memory.decay import state_of
    from memory.ports import system_clock

    now = system_clock()
    facts: dict[str, Fact] = {}
    turns: dict[int, Turn] = {}
    lines: dict[str, str] = {}
    wordings: dict[Fact, None] = {}
    for fact_id in fact_ids:
        preview = await memory.facts.preview_forget(fact_id)
        facts |= {fact.id: replace(fact, state=state_of(fact, now, loaded.settings.limits)) for fact in preview.facts}
        turns |= {turn.id: turn for turn in preview.turns}
        lines |= {statement.id: statement.text for statement in preview.statements}
        lines |= {summary.id: summary.rendered for summary in preview.summaries}
        lines |= {episode.id: episode.text for episode in preview.episodes}
        wordings |= dict.fromkeys(preview.wordings)
    texts = tuple(dict.fromkeys(text for fact in wordings for text in (fact.fact, fact.quote) if text.strip()))
    copies = files_holding(texts, copies_of(loaded.settings))
    return Plan(
        facts=tuple(facts.values()),
        turns=tuple(turns.values()),
        lines=tuple(lines.values()),
        wordings=tuple(wordings),
        texts=texts,
        copies=tuple(copies),
    )


def _show(plan: Plan, including_backups: bool, loaded: "LoadedSettings") -> None:
    typer.echo("This will be forgotten:")
    print_facts(plan.facts, loaded)
    for turn in plan.turns:
        when = shown_date(turn.timestamp, loaded)
        typer.echo(f"Cut from what {one_line(turn.speaker)} said on {when}: {one_line(turn.content)}")
    for line in plan.lines:
        typer.echo(f"Removed from what is kept of conversations: {one_line(line)}")
    if plan.copies:
        typer.echo("Older copies hold it, and will be cleaned:" if including_backups else "Older copies still hold it:")
        for copy in plan.copies:
            typer.echo(f"  {copy}")
        if not including_backups:
            typer.echo("Remove it from them too with: --including-backups")
    typer.echo("It cannot be undone.")


def _ask(plan: Plan) -> None:
    if not sys.stdin.isatty():
        raise AssistantError(
            "Nothing was forgotten: there is no terminal to ask on. Add -y to go ahead without asking."
        )
    count = len(plan.facts)
    if not typer.confirm(f"Forget {'this fact' if count == 1 else f'these {count} facts'}?", err=True):
        raise AssistantError("Nothing was forgotten.")


async def forget_facts(memory: "Memory", facts: "Sequence[Fact]", complete: bool = True) -> bool:
    """Forgets facts; whether no byte of them, nor of what went before them, is left in the file."""
    from memory.errors import NotFound

    for fact in facts:
        try:
            complete = (await memory.facts.forget(fact.id)).complete
        except NotFound:  # went with the one before, of whose chain it was
            continue
    for seconds in PATIENCE:
        if complete:
            break
        await asyncio.sleep(seconds)
        complete = await memory.database.checkpoint()
    return complete


def _clean_copies(plan: Plan, loaded: "LoadedSettings") -> list[str]:
    """Takes the facts out of every older copy, one after the other; what could not be done, in words."""
    from memory.copies import forget_in_copy
    from memory.errors import EngineError

    problems = []
    copies = copies_of(loaded.settings)
    for number, copy in enumerate(copies, 1):
        typer.echo(f"Cleaning copy {number} of {len(copies)}: {copy.name}", err=True)
        try:
            asyncio.run(forget_in_copy(copy, plan.wordings, limits=loaded.settings.limits))
        except EngineError as exc:
            problems.append(f"{copy} could not be cleaned; delete it to be rid of the words. {exc}")
    return problems


def _own_files(loaded: "LoadedSettings") -> list[Path]:
    """All that is stored but the memories of other people: what they said is theirs."""
    people = loaded.settings.data_dir / "people"
    own = person_file(loaded.settings)
    mine = [own, *(own.with_name(own.name + ending) for ending in ("-wal", "-shm")), *copies_of(loaded.settings)]
    return [file for file in files_below(loaded.settings.data_dir) if file in mine or people not in file.parents]


def _tell_what_is_left(left: Sequence[Path], complete: bool, problems: Sequence[str], loaded: "LoadedSettings") -> None:
    copies = [file for file in left if file in copies_of(loaded.settings)]
    own = [file for file in left if file.name.startswith(person_file(loaded.settings).name) and file not in copies]
    others = [file for file in left if file not in (*copies, *own)]
    for problem in problems:
        typer.echo(problem, err=True)
    if own and complete:
        typer.echo(
            "Something else that is remembered has the same words in it. See: olvido facts list --state all", err=True
        )
    elif own:
        typer.echo("Another program is reading the memory: the last bytes go when it has finished.", err=True)
    if copies:
        typer.echo("Older copies still hold it; delete them, or use --including-backups the next time:", err=True)
        typer.echo("\n".join(f"  {file}" for file in copies), err=True)
    if others:
        typer.echo("The words also stand in these files, which are yours to delete:", err=True)
        typer.echo("\n".join(f"  {file}" for file in others), err=True)
