"""The command line: global options, the commands, and what the user reads when something fails.

Each command lives in a file of its own and imports what it needs inside its functions: ``olvido --help`` stays fast.
"""

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from assistant.cli import backup, calibrate, chat, config, doctor, episodes, facts, recall, reembed, serve, stats
from assistant.cli.options import Options
from assistant.errors import AssistantError


class Commands(TyperGroup):
    """Turns the errors we raise, and missing rights, into a sentence and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as exc:
            sentence = _sentence_for_the_user(exc)
            if sentence is None:
                raise
            if isinstance(ctx.obj, Options) and ctx.obj.verbose:
                import traceback

                traceback.print_exc()
            typer.echo(sentence, err=True)
            raise typer.Exit(1) from None


def _sentence_for_the_user(exc: Exception) -> str | None:
    """What our own errors say; and of what the system does not allow, what it is."""
    engine = sys.modules.get("memory.errors")  # where it was never imported, nothing of it was raised
    if isinstance(exc, AssistantError) or (engine is not None and isinstance(exc, engine.EngineError)):
        return str(exc)
    if isinstance(exc, PermissionError) and exc.filename:
        return f"{exc.filename} cannot be used: {exc.strerror}. Look what is wrong with: olvido doctor"
    return None


app = typer.Typer(
    cls=Commands,
    name="olvido",
    help="A personal chat assistant that forgets aggressively and remembers surgically.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: loading rich would double the time it takes
    pretty_exceptions_enable=False,
)

# Register commands here: a group with add_typer, a single command with app.command.
app.command("chat")(chat.chat)
app.command("ask")(chat.ask)
app.command("serve")(serve.serve)
app.command("status")(serve.status)
app.add_typer(facts.app, name="facts")
app.add_typer(episodes.app, name="episodes")
app.command("recall")(recall.recall)
app.command("timeline")(recall.timeline)
app.command("stats")(stats.stats)
app.command("doctor")(doctor.doctor)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("forget-me")(backup.forget_me)
app.command("calibrate")(calibrate.calibrate)
app.command("reembed")(reembed.reembed)
app.add_typer(config.app, name="config")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("olvido")
        except PackageNotFoundError:
            number = "(not installed)"
        typer.echo(f"olvido {number}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    *,
    config: Annotated[Path | None, typer.Option(help="Configuration file to use.", metavar="PATH")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of everything stored.", metavar="PATH")] = None,
    owner: Annotated[str | None, typer.Option(help="The person to speak for.", metavar="NAME")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show logs and tracebacks on stderr.")] = False,
    version: Annotated[  # noqa: ARG001 (the callback answers)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    ctx.obj = Options(config=config, data_dir=data_dir, owner=owner, verbose=verbose)


def main() -> None:
    """Entry point of the ``olvido`` command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a character still gets the line
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app(prog_name="olvido")
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a reader that went away can still be dealt with
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as exc:
        if exc.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        typer.echo("The disk is full: the output could not be written.", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
