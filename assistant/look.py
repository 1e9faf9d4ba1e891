"""How a conversation looks in a terminal: Markdown as it streams, our own notices, lists that line up.

Only the sixteen colours of the terminal and no backgrounds, so that everything reads on dark and on light.
"""

import asyncio
import os
import re
from collections.abc import Iterator
from typing import ClassVar

from markdown_it import MarkdownIt
from pygments.token import Comment, Keyword, Name, Number, String, Token
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.control import Control
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.segment import ControlType, Segment, Segments
from rich.spinner import Spinner
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

WIDEST_COLUMNS = 100  # longer lines are hard to read
FRAMES_PER_SECOND = 12

_THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "dim",
        "markdown.item.bullet": "cyan",
        "markdown.item.number": "cyan",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.h4": "bold italic",
        "markdown.link": "blue",
        "markdown.link_url": "blue underline",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "saved": "green",
        "notice": "dim",
        "error": "red",
        "id": "cyan",
    }
)
_CODE = ANSISyntaxTheme(
    {
        Token: Style(),
        Comment: Style(dim=True),
        Keyword: Style(color="magenta"),
        Name.Function: Style(color="blue"),
        Name.Class: Style(color="blue"),
        Number: Style(color="cyan"),
        String: Style(color="green"),
    }
)
_BLOCKS = MarkdownIt().enable("table").enable("strikethrough")
_ENTRY = re.compile(r"(- `(?P<id>[^`]+)`|  -) (?P<text>.*)")


def terminal() -> Console:
    """The screen, with our colours; NO_COLOR is respected.

    The size is the terminal's own: COLUMNS and LINES may be those of another one.
    """
    environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return Console(theme=_THEME, highlight=False, _environ=environ)


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = {}  # all to the left


class _CodeBlock(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Syntax(str(self.text).rstrip(), self.lexer_name, theme=_CODE, word_wrap=True, padding=(0, 2), tab_size=4)


class _Table(TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)
            table.show_edge = False  # an empty line above and below it
            yield table


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "table_open": _Table,
    }


def markdown(text: str) -> RenderableType:
    """A text of the model's."""
    return Constrain(_Lines(_Markdown(text, hyperlinks=False)), WIDEST_COLUMNS)


def command_answer(text: str) -> RenderableType:
    """What a command says; entries that begin with an id or a command line up in two columns."""
    return Constrain(Group(*_parts(text)), WIDEST_COLUMNS)


def _parts(text: str) -> Iterator[RenderableType]:
    prose: list[str] = []
    entries: list[tuple[str, str]] = []
    for line in [*text.splitlines(), None]:
        entry = _ENTRY.fullmatch(line) if line is not None else None
        if entry and (entry["id"] or entries):
            if any(prose):
                yield _Lines(_Markdown("\n".join(prose), hyperlinks=False))
                yield Text()
            prose = []
            entries.append((entry["id"] or "", entry["text"]))
            continue
        if entries:
            yield _grid(entries)
            entries = []
        if line is not None:
            prose.append(line)
    if any(prose):
        yield _Lines(_Markdown("\n".join(prose), hyperlinks=False))


def _grid(entries: list[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="id", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in entries:
        grid.add_row(name, _Markdown(text, hyperlinks=False, style="none" if name else "dim"))
    return grid


def notice(text: str, kind: str) -> RenderableType:
    """A sentence of our own."""
    mark = {"saved": "✓ ", "error": "✗ "}.get(kind, "· ")
    line = Table.grid()
    line.add_row(Text(mark, style=kind), Text(text, style="error" if kind == "error" else "notice"))
    return Constrain(line, WIDEST_COLUMNS)


class Answering:
    """An answer as it comes: what is finished is printed, the block in the making is drawn again and again below it.

    Everything is written by one task, so that what is on the screen is always what is thought to be there.
    """

    def __init__(self, console: Console, *, waiting: bool) -> None:
        self._console = console
        self._waiting = Spinner("dots", style="cyan") if waiting else None
        self._text = ""
        self._changed = False
        self._begun = False
        self._drawn_lines = 0
        self._console.show_cursor(False)
        self._drawing = asyncio.create_task(self._draw_regularly(), name="drawing")

    def add(self, piece: str) -> None:
        """More words of the model."""
        self._waiting = None
        self._changed = True
        self._text += piece
        done, self._text = finished_blocks(self._text)
        if done:
            self._print_block(done)

    def say(self, shown: RenderableType) -> None:
        """Something of our own, below what was said so far."""
        self._settle()
        self._console.print(shown)

    def say_verbatim(self, text: str) -> None:
        """Something to be copied: only the terminal breaks its lines."""
        self._settle()
        self._console.print(Text(text.rstrip()), soft_wrap=True)

    def close(self) -> None:
        """Nothing more comes."""
        self._drawing.cancel()
        self._settle()
        self._console.show_cursor(True)

    def _settle(self) -> None:
        """What is in the making is printed as it is."""
        text, self._text = self._text, ""
        if text.strip():
            self._print_block(text)
        else:
            self._erase()

    def _print_block(self, text: str) -> None:
        with self._console:  # one write
            self._erase()
            if self._begun:
                self._console.print()
            self._console.print(markdown(text.strip("\n")))
        self._begun = True

    async def _draw_regularly(self) -> None:
        while not self._console.is_dumb_terminal:
            if self._changed or self._waiting:
                self._draw()
            await asyncio.sleep(1 / FRAMES_PER_SECOND)

    def _draw(self) -> None:
        self._changed = False
        lines = self._console.render_lines(self._waiting or markdown(self._text), pad=False)
        if self._begun:
            lines = [[], *lines]
        lines = lines[-max(1, self._console.height - 2) :]  # what scrolled away cannot be drawn again
        with self._console:
            self._erase()
            for line in lines:
                self._console.print(Segments([*line, Segment.line()]), end="")
        self._drawn_lines = len(lines)

    def _erase(self) -> None:
        up = ((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)) * self._drawn_lines
        self._drawn_lines = 0
        self._console.control(Control(ControlType.CARRIAGE_RETURN, *up))


class _Lines:
    """The lines of something, without empty ones around it."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._inner, options.update(height=None), pad=False)
        while lines and not _words(lines[0]):
            lines.pop(0)
        while lines and not _words(lines[-1]):
            lines.pop()
        for line in lines:
            yield from line
            yield Segment.line()


def _words(line: list[Segment]) -> str:
    return "".join(segment.text for segment in line).strip()


def finished_blocks(text: str) -> tuple[str, str]:
    """A text that is being written, parted before its last block: what comes first will not change any more."""
    starts = [token.map[0] for token in _BLOCKS.parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    if len(starts) < 2:
        return "", text
    lines = text.splitlines(keepends=True)
    return "".join(lines[: starts[-1]]), "".join(lines[starts[-1] :])
