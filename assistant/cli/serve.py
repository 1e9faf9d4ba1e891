"""``olvido serve`` and ``olvido status``: the daemon, and how it is."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assistant.cli.options import load, options_of
from assistant.cli.output import print_json

if TYPE_CHECKING:
    from assistant.daemon import Daemon
    from assistant.settings import LoadedSettings


def serve(ctx: typer.Context) -> None:
    """Run as a daemon: answers what comes through the channels until it is told to stop.

    SIGTERM or Ctrl-C stops it cleanly; a second one ends it at once.
    """
    from assistant import logs
    from assistant.errors import AssistantError
    from memory.errors import EngineError

    loaded = load(ctx)
    logs.configure(loaded.settings, verbose=options_of(ctx).verbose)
    try:
        asyncio.run(_serve(loaded))
    except (AssistantError, EngineError):
        raise
    except Exception as exc:  # noqa: BLE001 (the last word of the process: loud, and without secrets)
        _tell_the_end(exc, loaded)
        raise typer.Exit(1) from None


def status(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """Ask the running daemon how it is; exit code 1 when there is none."""
    from assistant.control import ask_status
    from assistant.errors import NotServing

    loaded = load(ctx)
    try:
        answer = asyncio.run(ask_status(loaded.settings.data_dir))
    except NotServing as exc:
        if as_json:
            print_json({"running": False, "why": str(exc)})
            raise typer.Exit(1) from None
        raise
    if as_json:
        print_json({"running": True, **answer})
        return
    for line in _lines(answer):
        typer.echo(line)


def _lines(answer: dict[str, Any]) -> list[str]:
    hours, minutes = divmod(answer["uptime_seconds"] // 60, 60)
    lines = [
        f"Olvido serves {answer['data_dir']} (process {answer['pid']}).",
        f"Up for {hours} h {minutes} min, since {answer['started_at']}.",
        f"Model: {answer['model']}. Channels: {', '.join(answer['channels'])}.",
        f"Answered: {answer['answered']}. Under way: {answer['turns_under_way']} in {answer['chats_under_way']} chats.",
        f"Memories open: {answer['people_open']}. Process memory: {answer['memory_bytes'] / 1e6:.0f} MB.",
        f"Last backup since the start: {answer['last_backup'] or 'none was due yet'}.",
    ]
    if answer["stopping"]:
        lines.append("It is being stopped.")
    return [*lines, *(f"Last problem, at {each['at']}: {each['text']}" for each in answer["problems"])]


async def _serve(loaded: "LoadedSettings") -> None:
    from assistant.daemon import serve as run

    def ready(daemon: "Daemon") -> None:
        names = ", ".join(daemon.channels)
        typer.echo(f"Olvido serves {loaded.settings.data_dir} ({names}). Stop it with Ctrl-C.", err=True)

    await run(loaded, ready=ready)


def _tell_the_end(exc: Exception, loaded: "LoadedSettings") -> None:
    import traceback

    from assistant.errors import ChannelFailed, FolderGone
    from assistant.logs import get_logger
    from assistant.redact import Redactor

    get_logger(part="daemon").critical("ended", exc_info=exc)
    redact = Redactor(loaded.settings.secrets())
    reasons = exc.exceptions if isinstance(exc, ExceptionGroup) else (exc,)
    for reason in reasons:
        if isinstance(reason, ChannelFailed):
            print(redact(f"Olvido stopped. {reason}"), file=sys.stderr)
            continue
        last = traceback.format_exception_only(reason)[-1].strip()
        why = f": {reason}" if isinstance(reason, FolderGone) else f", a part of it failed: {last}"
        print(redact(f"Olvido stopped{why}"), file=sys.stderr)
    logs = loaded.settings.data_dir / "logs"
    if logs.is_dir():
        print(f"The whole story is in {logs}.", file=sys.stderr)
