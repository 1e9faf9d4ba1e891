"""The conversation in a terminal, or through a pipe."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.commands import HANDLERS, is_command
from assistant.said import Said
from assistant.talk import Talk
from assistant.turn import take_turn

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import FormattedText
    from rich.console import Console

LEAVING = ("/quit", "/exit", "/bye")


class Background:
    """What is owed after a reply is done while the user reads it; the turn never waits for it."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._task: asyncio.Task[int] | None = None

    def start(self) -> None:
        """Does what is queued, unless it is being done already."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._talk.memory.run_pending(), name="housekeeping")

    async def finish(self) -> None:
        """Waits for what is under way, and does the rest."""
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task
        await self._talk.memory.run_pending()


async def converse(talk: Talk, history: Path, *, greeting: str) -> None:
    """Talks until the user leaves; every line of a pipe is a message."""
    background = Background(talk)
    try:
        if sys.stdin.isatty() and sys.stdout.isatty():
            await _in_terminal(talk, history, background, greeting)
        else:
            await _through_pipe(talk, background)
    finally:
        await background.finish()


# -- through a pipe


async def _through_pipe(talk: Talk, background: Background) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        text = line.strip()
        if not text:
            continue
        await say_plainly(take_turn(talk, text))
        background.start()
        if text.split()[0].lower() in LEAVING:
            return


async def say_plainly(answer: AsyncIterator[Said]) -> bool:
    """Writes an answer as it comes, without colours; our own notices in brackets. Whether all went well."""
    went_well, in_reply = True, False
    async with aclosing(answer) as parts:  # type: ignore[type-var]
        async for said in parts:
            if said.kind == "piece":
                print(said.text, end="", flush=True)
                in_reply = True
                continue
            if in_reply:
                print()
                in_reply = False
            went_well = went_well and said.kind != "error"
            target = sys.stderr if said.kind == "error" else sys.stdout
            print(f"[{said.text}]" if said.kind == "notice" else said.text, file=target, flush=True)
    if in_reply:
        print(flush=True)
    return went_well


# -- in a terminal


async def _in_terminal(talk: Talk, history: Path, background: Background, greeting: str) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(greeting, markup=False)
    prompt = _prompt(talk, history)
    while True:
        try:
            text = await prompt.prompt_async(_marker(talk))
        except KeyboardInterrupt:
            continue
        except EOFError:
            console.print(talk.say("goodbye"), markup=False)
            return
        if not text.strip():
            continue
        await _show(console, talk, text)
        background.start()
        if is_command(text) and text.split()[0].lower() in LEAVING:
            return


def _marker(talk: Talk) -> "FormattedText":
    from prompt_toolkit.formatted_text import FormattedText

    private = talk.private is not None
    return FormattedText([("bold ansimagenta" if private else "bold ansicyan", "· " if private else "› ")])


async def _show(console: "Console", talk: Talk, text: str) -> None:
    """Shows an answer as it comes; Ctrl-C stops it and keeps the talk."""
    task = asyncio.ensure_future(_render(console, take_turn(talk, text)))
    with _interrupting(task.cancel):
        try:
            await task
        except asyncio.CancelledError:
            console.print(talk.say("stopped"), style="dim", markup=False)


class _interrupting:
    """Ctrl-C does something else than ending the program."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self._action = action

    def __enter__(self) -> None:
        with suppress(NotImplementedError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._action)

    def __exit__(self, *_: object) -> None:
        with suppress(NotImplementedError, ValueError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


async def _render(console: "Console", answer: AsyncIterator[Said]) -> None:
    from rich.live import Live
    from rich.markdown import Markdown
    from rich.text import Text

    reply = ""
    live: Live | None = None
    styles = {"notice": "dim italic", "error": "red"}
    try:
        async with aclosing(answer) as parts:  # type: ignore[type-var]
            async for said in parts:
                if said.kind == "piece":
                    if live is None:
                        live = Live(console=console, vertical_overflow="visible", refresh_per_second=12)
                        live.start()
                    reply += said.text
                    live.update(Markdown(reply))
                    continue
                if live is not None:
                    live.stop()
                    live, reply = None, ""
                shown = Markdown(said.text) if said.kind == "command" else Text(said.text, style=styles[said.kind])
                console.print(shown)
    finally:
        if live is not None:
            live.stop()
    console.print()


def _prompt(talk: Talk, history: Path) -> "PromptSession[str]":
    """Input with history, completion of commands and several lines (Alt-Enter, or Esc then Enter)."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings

    class Discreet(FileHistory):
        """A history that keeps nothing of private stretches, nor of what is to be forgotten."""

        def store_string(self, string: str) -> None:
            if talk.private is None:
                super().store_string(string)

    history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    history.touch(mode=0o600, exist_ok=True)
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    meanings = {f"/{name}": talk.pack.commands.get(name, "") for name in HANDLERS}
    completer = WordCompleter(list(meanings), meta_dict=meanings, sentence=True)
    return PromptSession(
        history=Discreet(str(history)), completer=completer, complete_while_typing=True, key_bindings=keys
    )
