"""``olvido backup``, ``restore`` and ``forget-me``: whole memories copied, brought back, erased."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assistant.cli.options import load
from assistant.cli.output import print_json, print_table
from assistant.errors import AssistantError

if TYPE_CHECKING:
    from assistant.backups import Backup
    from assistant.settings import LoadedSettings

AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]


def backup(
    ctx: typer.Context,
    everybody: Annotated[bool, typer.Option("--all", help="Everybody's memory, not only the owner's.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show the copies there are; make none.")] = False,
    as_json: AsJson = False,
) -> None:
    """Copy the memory, also while the daemon runs; the copy is checked, the oldest ones go.

    Copies lie in people/backups of the data folder.
    """
    from assistant.backups import back_up, backups_of
    from assistant.people import known_people
    from memory.ports import system_clock

    settings = load(ctx).settings
    owners = known_people(settings) if everybody else [settings.owner]
    if listed:
        found = [copy for owner in owners for copy in backups_of(settings, owner)]
    else:
        found = [back_up(settings, owner, system_clock()) for owner in owners]
    if as_json:
        print_json([_data(copy) for copy in found])
    elif listed:
        print_table(["owner", "made", "bytes", "file"], [[*map(str, _data(copy).values())] for copy in found])
    else:
        for copy in found:
            typer.echo(f"Copied the memory of {copy.owner} to {copy.file} ({copy.bytes:,} bytes, checked).")


def restore(
    ctx: typer.Context,
    copy: Annotated[
        Path | None, typer.Argument(metavar="COPY", help="The copy to bring back; without, the newest.")
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Put a copy in place of the memory, also while the daemon runs.

    What was there is set aside first. What was forgotten since the copy was made stays forgotten.
    """
    from assistant.backups import backups_of
    from memory.copies import check_file

    loaded = load(ctx)
    settings = loaded.settings
    if copy is None:
        newest = next(iter(backups_of(settings, settings.owner)), None)
        if newest is None:
            raise AssistantError(f"There is no copy of the memory of {settings.owner}. Make one with: olvido backup")
        copy = newest.file
    elif not copy.is_file():
        raise AssistantError(f"{copy} does not exist or is no file. See the copies with: olvido backup --list")
    check_file(copy, limits=settings.limits)
    _sure(f"Put {copy.name} in place of the memory of {settings.owner}?", yes, "Nothing was changed")
    aside = asyncio.run(_restore(loaded, copy))
    if as_json:
        print_json({"owner": settings.owner, "restored": str(copy), "set_aside": str(aside) if aside else None})
        return
    typer.echo(f"The memory of {settings.owner} is that of {copy.name} now.")
    if aside:
        typer.echo(f"What was there before is in {aside}.")


def forget_me(ctx: typer.Context, yes: Yes = False, as_json: AsJson = False) -> None:
    """Erase everything about the owner: memory, copies, logs, what was typed. This cannot be undone.

    Another person is named before the command: olvido --owner ana forget-me
    """
    from assistant.backups import is_known
    from assistant.people import known_people

    loaded = load(ctx)
    owner = loaded.settings.owner
    if not is_known(loaded.settings, owner):
        others = ", ".join(known_people(loaded.settings)) or "nobody"
        raise AssistantError(f"Nothing is stored about {owner}, and nothing was erased. There are: {others}.")
    _sure(f"Erase everything about {owner}? It cannot be undone.", yes, "Nothing was erased")
    gone = asyncio.run(_erase(loaded))
    if as_json:
        print_json({"owner": owner, "deleted": [str(path) for path in gone]})
    else:
        typer.echo(f"Everything about {owner} is erased: {len(gone)} files.")


async def _restore(loaded: "LoadedSettings", copy: Path) -> Path | None:
    from assistant.backups import restore as put_back
    from assistant.control import file_to_ourselves
    from memory.ports import system_clock

    settings = loaded.settings
    async with file_to_ourselves(settings.data_dir, settings.owner):
        return await put_back(settings, settings.owner, copy, system_clock)


async def _erase(loaded: "LoadedSettings") -> list[Path]:
    from assistant.backups import erase
    from assistant.control import file_to_ourselves

    settings = loaded.settings
    async with file_to_ourselves(settings.data_dir, settings.owner):
        return await asyncio.to_thread(erase, settings, settings.owner)


def _sure(question: str, yes: bool, otherwise: str) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise AssistantError(f"{otherwise}: there is no terminal to ask on. Add -y to go ahead without asking.")
    if not typer.confirm(question, err=True):
        raise AssistantError(f"{otherwise}.")


def _data(copy: "Backup") -> dict[str, object]:
    return {
        "owner": copy.owner,
        "made": copy.at.isoformat(timespec="seconds"),
        "bytes": copy.bytes,
        "file": str(copy.file),
    }
