"""``olvido chat`` and ``olvido ask``: the conversation in the terminal."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from assistant.cli.options import load, options_of
from assistant.errors import AssistantError

if TYPE_CHECKING:
    from datetime import timedelta

    from assistant.settings import LoadedSettings
    from assistant.talk import Talk

UNANSWERED_CHARACTERS = 60  # shown of a message that got no answer


def chat(ctx: typer.Context) -> None:
    """Talk to Olvido in this terminal, or through a pipe: a line a message."""
    if not asyncio.run(_chat(_loaded(ctx))):
        raise typer.Exit(1)


def ask(
    ctx: typer.Context, message: Annotated[list[str], typer.Argument(metavar="MESSAGE", help="What to say.")]
) -> None:
    """Say one thing and read the answer."""
    if not " ".join(message).strip():
        raise AssistantError('There is nothing to answer. Say something: olvido ask "..."')
    if not asyncio.run(_ask(_loaded(ctx), " ".join(message))):
        raise typer.Exit(1)


def _loaded(ctx: typer.Context) -> "LoadedSettings":
    from assistant import logs

    loaded = load(ctx)
    logs.configure(loaded.settings, verbose=options_of(ctx).verbose)
    return loaded


async def _chat(loaded: "LoadedSettings") -> bool:
    from datetime import timedelta
    from textwrap import shorten

    from assistant.repl import converse, harmless
    from assistant.traces import history_file

    idle = timedelta(hours=loaded.settings.serve.session_idle_hours)
    async with _talking(loaded, idle) as talk:
        greeting = [talk.say("welcome"), *talk.model.notes]
        if talk.turn is not None:
            words = shorten(harmless(talk.turn.content), UNANSWERED_CHARACTERS, placeholder=" …")
            greeting.append(talk.say("unanswered", text=words))
        return await converse(talk, history_file(loaded.settings.data_dir), greeting=greeting)


async def _ask(loaded: "LoadedSettings", message: str) -> bool:
    from assistant.repl import say_plainly
    from assistant.turn import take_turn

    async with _talking(loaded) as talk:
        went_well = await say_plainly(take_turn(talk, message))
        await talk.memory.run_pending()
    return went_well


@asynccontextmanager
async def _talking(loaded: "LoadedSettings", idle: "timedelta | None" = None) -> "AsyncIterator[Talk]":
    """The talk of the owner in this terminal, with the model and the memory it needs; see `open_talk` for `idle`."""
    from assistant.model import ChatModel
    from assistant.people import open_memory
    from assistant.summariser import summariser_for
    from assistant.talk import open_talk

    language = _language(loaded)  # before the model is loaded: it may be refused
    async with (
        ChatModel.open(loaded.settings, progress=_progress) as model,
        open_memory(loaded, summariser=summariser_for(model)) as memory,
    ):
        yield await open_talk(
            memory,
            model,
            "repl",
            "me",
            language=language,
            follows=loaded.settings.language == "auto",
            data_dir=loaded.settings.data_dir,
            idle=idle,
        )


def _language(loaded: "LoadedSettings") -> str:
    """The language of our own first words: the configured one, else that of the terminal."""
    import locale

    from assistant.people import language_packs

    packs = language_packs(loaded)
    wanted = loaded.settings.language
    if wanted == "auto":
        wanted = (locale.getlocale()[0] or "en")[:2]
    return wanted if wanted in packs else "en"


def _progress(text: str) -> None:
    """What is being done before the talk can begin; only where somebody looks."""
    if sys.stderr.isatty():
        typer.echo(text, err=True)
