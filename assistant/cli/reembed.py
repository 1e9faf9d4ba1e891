"""``olvido reembed``: all vectors anew after a change of the embedding model."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from assistant.cli.options import load
from assistant.cli.person import look
from assistant.cli.shown import print_data

if TYPE_CHECKING:
    from memory import Memory


def reembed(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """Make all vectors anew with the embedding model configured; the old ones serve until it is done."""
    loaded = load(ctx)
    count, model = look(loaded, _reembed, (0, ""))
    if as_json:
        print_data({"reembedded": count, "model": model or None})
    elif count:
        typer.echo(f"{count} texts were embedded with {model}, which is in force now.")
    else:
        typer.echo("There is nothing to do: every vector was made by the embedding model configured.")


async def _reembed(memory: "Memory") -> tuple[int, str]:
    if not await memory.index.needs_reembedding():
        return 0, await memory.index.model()
    with _bar() as progress:
        count = await memory.reembed(progress)
    await memory.calibrator.current()  # a new model is read on a new scale
    return count, await memory.index.model()


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; silent elsewhere."""
    typer.echo("Interrupting this is safe: run it again to go on.", err=True)
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("Embedding", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
