"""``olvido facts export`` and ``import``: facts as a file to keep, read, edit and bring back."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from assistant.cli.options import load
from assistant.cli.person import look, work_on
from assistant.cli.shown import fact_data, print_data, quoted
from assistant.errors import AssistantError

if TYPE_CHECKING:
    from memory import Memory
    from memory.importing import Imported
    from memory.portable import Format

FORMATS = ("json", "markdown")
ENDINGS: dict[str, "Format"] = {".json": "json", ".md": "markdown", ".markdown": "markdown"}

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="json or markdown; by the file's ending.",
        autocompletion=lambda: list(FORMATS),
    ),
]


def export(
    ctx: typer.Context,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Where to; without, the terminal.")] = None,
    form: FormatOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write every fact, its fields and its chain, as JSON or Markdown."""
    from memory import portable

    loaded = load(ctx)
    to_stdout = file is None or str(file) == "-"
    chosen = _format(form, file, "json")

    async def work(memory: "Memory") -> str:
        return await memory.facts.export(chosen)

    text = look(loaded, work, portable.write([], chosen))
    if to_stdout or file is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())  # whatever the terminal's encoding: a file has to be UTF-8
        sys.stdout.buffer.flush()
    else:
        _write(file, text, force)
        typer.echo(f"Wrote {file}. What is forgotten later stays in it: delete it then.", err=True)


def import_(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to read; - for what is piped in.")],
    form: FormatOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """Add the facts of a file; known ones are left as they are, forgotten ones do not come back."""
    loaded = load(ctx)
    chosen = _format(form, file, None)
    text = _read(file)

    async def work(memory: "Memory") -> "Imported":
        return await memory.facts.import_(text, chosen)

    done = work_on(loaded, work)
    if as_json:
        counts = {"imported": len(done.facts), "known": done.known, "forgotten_earlier": done.forgotten}
        facts, superseded = ([fact_data(fact) for fact in found] for found in (done.facts, done.superseded))
        print_data({**counts, "renamed": dict(done.renamed), "facts": facts, "superseded": superseded})
        return
    typer.echo(
        f"{len(done.facts)} imported, {done.known} known already, {done.forgotten} forgotten earlier and left out."
    )
    for old, new in done.renamed:
        typer.echo(f"{old} of the file is {new} here.")
    for fact in done.superseded:
        typer.echo(f"Replaced by {fact.superseded_by}: {quoted(fact)}")
    if done.facts:
        typer.echo(f"Undo with: olvido facts undo {done.facts[0].id}")


def _format(form: str | None, file: Path | None, default: "Format | None") -> "Format":
    if form in FORMATS:
        return cast("Format", form)
    if form is not None:
        raise AssistantError(f"There is no such format; it is one of {', '.join(FORMATS)}.")
    found = ENDINGS.get(file.suffix.lower()) if file else None
    if found is None and default is None:
        raise AssistantError("The name does not tell the format: add --format json or --format markdown.")
    return found or default or "json"


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as exc:
        raise AssistantError(f"{file} cannot be read: {exc.strerror}. Nothing was imported.") from None
    except UnicodeDecodeError:
        raise AssistantError(f"{file} is not UTF-8 text. Save it as UTF-8. Nothing was imported.") from None


def _write(file: Path, text: str, force: bool) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL), 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            os.fchmod(descriptor, 0o600)  # also where the file was there before
            stream.write(text)
    except FileExistsError:
        raise AssistantError(f"{file} exists already. Name another file, or replace it with --force.") from None
    except OSError as exc:
        raise AssistantError(f"{file} cannot be written: {exc.strerror}. Name another file.") from None
