"""The memory a command works on: the owner's, opened for as long as the work takes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from assistant.cli.output import one_line
from assistant.errors import AssistantError

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings
    from memory import Memory

T = TypeVar("T")


def work_on(loaded: "LoadedSettings", work: "Callable[[Memory], Awaitable[T]]") -> T:
    """Does something with the owner's memory, which is created if there is none."""
    from assistant.people import open_memory

    async def run() -> T:
        async with open_memory(loaded) as memory:
            return await work(memory)

    return asyncio.run(run())


def change(loaded: "LoadedSettings", work: "Callable[[Memory], Awaitable[T]]") -> T:
    """The same for what presupposes that something is remembered."""
    if not is_there(loaded):
        raise AssistantError(
            f"Nothing is remembered about {loaded.settings.owner} yet. Add a first fact with: olvido facts add TEXT"
        )
    return work_on(loaded, work)


def look(loaded: "LoadedSettings", work: "Callable[[Memory], Awaitable[T]]", otherwise: T) -> T:
    """The same for looking: where nothing is remembered yet, nothing is created."""
    return work_on(loaded, work) if is_there(loaded) else otherwise


def is_there(loaded: "LoadedSettings") -> bool:
    """Whether the owner has a memory."""
    from assistant.people import person_file

    folder = loaded.settings.data_dir
    if folder.exists() and not folder.is_dir():
        raise AssistantError(
            f"{folder} is not a folder. Name the folder where everything is stored: data_dir, or --data-dir."
        )
    return person_file(loaded.settings).exists()


def complete_ids(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """The ids of facts, for the shell; a shell that asks is never told of a problem."""
    with suppress(Exception):
        from assistant.people import person_file
        from memory.stores.glance import ids_at_a_glance

        file = person_file(_loaded_for_completion(ctx).settings)
        given = set(ctx.params.get("fact_ids") or ())
        for fact_id, text in ids_at_a_glance(file):
            if fact_id.startswith(incomplete.lower()) and fact_id not in given:
                yield fact_id, one_line(text)[:60]


def _loaded_for_completion(ctx: typer.Context) -> "LoadedSettings":
    """While completing, no callback has run: the global options are only in the parameters of the command above."""
    from assistant.cli.options import Options, load

    given = ctx.find_root().params
    config, data_dir = (Path(given[name]) if given.get(name) else None for name in ("config", "data_dir"))
    ctx.obj = Options(config=config, data_dir=data_dir, owner=given.get("owner"))
    return load(ctx)
