"""The conversation in a terminal, or through a pipe."""

import asyncio
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
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
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """Without the characters that steer a terminal: what a model or a stored text says is never obeyed."""
    return _STEERING.sub("", text)


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


async def converse(talk: Talk, history: Path, *, greeting: Sequence[str]) -> bool:
    """Talks until the user leaves; every line of a pipe is a message. False: a line of a pipe was not answered."""
    background = Background(talk)
    try:
        if sys.stdin.isatty() and sys.stdout.isatty():
            with _keys_wait():
                await _in_terminal(talk, history, background, greeting)
            return True
        return await _through_pipe(talk, background)
    finally:
        await background.finish()


# -- through a pipe


async def _through_pipe(talk: Talk, background: Background) -> bool:
    went_well = True
    while line := await asyncio.to_thread(sys.stdin.readline):
        text = line.strip()
        if not text:
            continue
        went_well = await say_plainly(take_turn(talk, text)) and went_well
        background.start()
        if text.split()[0].lower() in LEAVING:
            break
    return went_well


async def say_plainly(answer: AsyncIterator[Said]) -> bool:
    """Writes an answer as it comes, without colours; our own notices in brackets. Whether all went well."""
    went_well, in_reply = True, False
    async with aclosing(answer) as parts:  # type: ignore[type-var]
        async for said in parts:
            text = harmless(said.unformatted)
            if said.kind == "piece":
                print(text, end="", flush=True)
                in_reply = True
                continue
            if in_reply:
                print()
                in_reply = False
            went_well = went_well and said.kind != "error"
            target = sys.stderr if said.kind == "error" else sys.stdout
            if said.kind == "notice":
                text = f"[{text}]"
            print(text, file=target, flush=True)
    if in_reply:
        print(flush=True)
    return went_well


# -- in a terminal


async def _in_terminal(talk: Talk, history: Path, background: Background, greeting: Sequence[str]) -> None:
    from rich.text import Text

    from assistant import look

    _warm_up(talk)
    console = look.terminal()
    console.print(Text.assemble(("Olvido", "bold"), ("  " + talk.model.name, "dim")))
    for line in greeting:
        console.print(line, markup=False, width=min(console.width, look.WIDEST_COLUMNS))
    console.print(talk.say("keys"), style="dim", markup=False)
    console.print()
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


def _warm_up(talk: Talk) -> None:
    """What the first message would wait for is loaded while the user reads the greeting and types."""
    threading.Thread(target=talk.memory.extract_facts, args=(talk.say("welcome"),), name="warm-up", daemon=True).start()


def _marker(talk: Talk) -> "FormattedText":
    from prompt_toolkit.formatted_text import FormattedText

    private = talk.private is not None
    return FormattedText([("bold ansimagenta" if private else "bold ansicyan", "· " if private else "› ")])


async def _show(console: "Console", talk: Talk, text: str) -> None:
    """Shows an answer as it comes; Ctrl-C stops it and keeps the talk."""
    from assistant import look

    task = asyncio.ensure_future(_render(console, take_turn(talk, text), waiting=not is_command(text)))
    with _interrupting(task.cancel):
        try:
            await task
        except asyncio.CancelledError:
            console.print(look.notice(talk.say("stopped"), "notice"))
    console.print()


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


@contextmanager
def _keys_wait() -> Iterator[None]:
    """Keys pressed during a reply, Ctrl-D too, wait for the next prompt; echoed they would tear what is being drawn."""
    import termios

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    quiet = [*before[:3], before[3] & ~(termios.ECHO | termios.ICANON), *before[4:]]
    termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


async def _render(console: "Console", answer: AsyncIterator[Said], *, waiting: bool) -> None:
    from assistant import look

    shown = look.Answering(console, waiting=waiting)
    try:
        async with aclosing(answer) as parts:  # type: ignore[type-var]
            async for said in parts:
                text = harmless(said.text)
                if said.kind == "piece":
                    shown.add(text)
                elif said.verbatim:
                    shown.say_verbatim(text)
                else:
                    shown.say(
                        look.command_answer(text)
                        if said.kind == "command"
                        else look.notice(text, "saved" if said.saved else said.kind)
                    )
    finally:
        shown.close()


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
        history=Discreet(str(history)),
        completer=completer,
        complete_while_typing=True,
        key_bindings=keys,
        prompt_continuation="  ",
    )
