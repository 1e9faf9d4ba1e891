"""Records a session of the real REPL on a pseudo-terminal as pictures: 80 and 120 columns, dark and light.

    python docs/record.py [FOLDER]        writes session-80-dark.svg and so on, by default into docs/pictures

Everything is real but the words of the model, which come from the scripted server of assistant/testing.py.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from wcwidth import wcwidth

from assistant.testing import ChatReply, OpenAIServer, Terminal

ROWS = 40
WIDTHS = (80, 120)


def words(text: str) -> ChatReply:
    """A reply that streams word by word."""
    pieces = text.split(" ")
    return ChatReply(pieces=(*(f"{piece} " for piece in pieces[:-1]), pieces[-1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is typed, line by line, and what the model says to what is no command."""

    name: str
    talk: tuple[tuple[str, str], ...]


SCENES = (
    Scene(
        name="session",
        talk=(
            (
                "I live in Lyon and I work in fintech, team of 5.",
                "Good to know. A team of five is small enough to decide things over lunch, which in Lyon sounds like "
                "an excellent habit.",
            ),
            ("I'm allergic to peanuts.", "Noted. I will keep peanuts out of everything I suggest."),
            (
                "Suggest a dinner for the team on Friday?",
                "Three places that can seat six without much notice:\n\n"
                "1. **A bouchon** near the Presqu'île, for *quenelles* and long conversations.\n"
                "2. **A pizzeria** in Croix-Rousse: quick, informal, good for the two who leave early.\n"
                "3. **A Lebanese table**: many small plates. Ask about the sauces, because of the peanuts.\n\n"
                "Shall I draft the invitation?",
            ),
            ("I moved to Rome.", "That changes Friday, then. Shall we look for a *trattoria* instead?"),
            ("/new", ""),
            (
                "How far is the sea from Rome?",
                "About 30 km: the train from *Porta San Paolo* to **Ostia** takes half an hour.",
            ),
            ("/why", ""),
        ),
    ),
    Scene(
        name="commands",
        talk=(
            ("/facts", ""),
            ("What could I cook tonight, quickly?", "*Cacio e pepe*: ten minutes, three ingredients, no peanuts."),
            ("/context", ""),
            ("/stats", ""),
            ("我对花生过敏，请记住。", "好的，我记住了：推荐餐厅时会避开**花生**。"),
            ("/remember 我的生日是五月十二日", ""),
            ("/facts", ""),
            ("/help", ""),
        ),
    ),
    Scene(
        name="markdown",
        talk=(
            (
                "How do I count the words of a file in Python?",
                "## Counting words\n\nRead the file and let a `Counter` do the work:\n\n"
                "```python\nfrom collections import Counter\n\n# every word in lower case\n"
                "def count_words(path: str, most: int = 10) -> list[tuple[str, int]]:\n    with open(path) as file:\n"
                "        return Counter(file.read().lower().split()).most_common(most)\n```\n\n"
                "| way | speed | memory |\n|---|---|---:|\n| read at once | fast | the whole file |\n"
                "| line by line | a little slower | one line |\n\n"
                "> For files of many gigabytes read line by line.\n\n"
                "- `split()` parts at any white space\n- punctuation stays with its word, so you may want "
                '`re.findall(r"\\w+", text)` instead of it, which is slower but counts *end.* and *end* as one\n\n'
                "See the [documentation](https://docs.python.org/3/library/collections.html).",
            ),
        ),
    ),
)

NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")  # as pyte has them


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours:
    """A terminal's ground, its text, and the colours of NAMES."""

    ground: str
    text: str
    frame: str
    named: tuple[str, ...]


THEMES = {
    "dark": Colours(
        ground="#181a1f",
        text="#d0d3da",
        frame="#3a3f4b",
        named=("#3f4451", "#e06c75", "#98c379", "#d19a66", "#61afef", "#c678dd", "#56b6c2", "#d7dae0"),
    ),
    "light": Colours(
        ground="#ffffff",
        text="#24292f",
        frame="#d0d7de",
        named=("#24292f", "#cf222e", "#116329", "#9a6700", "#0969da", "#8250df", "#1b7c83", "#6e7781"),
    ),
}
CELL, LINE, SIZE, MARGIN, BAR = 8.4, 19, 14, 14, 30  # pixels
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"


def main() -> None:
    """Records every scene in every width and colour."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for columns in WIDTHS:
        with OpenAIServer() as server, tempfile.TemporaryDirectory() as data:
            for scene in SCENES:
                screen = record(scene, server, Path(data), columns)
                for theme, colours in THEMES.items():
                    file = folder / f"{scene.name}-{columns}-{theme}.svg"
                    file.write_text(picture(screen, columns, colours), encoding="utf-8")
                    print(file)


def record(scene: Scene, server: OpenAIServer, data: Path, columns: int) -> list[Any]:
    """Plays a scene; the lines of the whole session as they were seen, each a mapping of columns to cells."""
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OLVIDO_", "NO_COLOR"))},
        "OLVIDO_MODEL__PROVIDER": "custom",
        "OLVIDO_MODEL__BASE_URL": server.base_url,
        "OLVIDO_MODEL__NAME": "kimi-k2.5",
        "OLVIDO_MODEL__SUMMARIES": "extracted",  # the replies written here are for the talk
    }
    with Terminal(["--data-dir", str(data), "chat"], environ, columns=columns, rows=ROWS) as terminal:
        wait_for_prompt(terminal, 1)
        for number, (typed, reply) in enumerate(scene.talk, 2):
            if reply:
                server.enqueue(words(reply))
            terminal.type(f"{typed}\r")
            wait_for_prompt(terminal, number)
        rows = [*terminal.screen.history.top, *(terminal.screen.buffer[row] for row in range(ROWS))]
        return rows[: len(terminal.text.splitlines())]


def wait_for_prompt(terminal: Terminal, number: int) -> None:
    """Until the terminal waits for the next line to be typed."""
    terminal.wait_until(
        lambda text: sum(line.startswith("›") for line in text.splitlines()) >= number and text.endswith("›")
    )


def picture(rows: list[Any], columns: int, colours: Colours) -> str:
    """A session as an SVG picture: every run of cells stands where the terminal had it, whatever the font."""
    width, height = columns * CELL + 2 * MARGIN, len(rows) * LINE + 2 * MARGIN + BAR
    lamps = "".join(
        f'<circle cx="{18 + 18 * place}" cy="19" r="5.5" fill="{fill}"/>'
        for place, fill in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    drawn = [run for number, row in enumerate(rows) for run in runs(row, columns, number, colours)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
            f'height="{height}" font-family="{FONTS}" font-size="{SIZE}" fill="{colours.text}">',
            f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1}" rx="8" fill="{colours.ground}" '
            f'stroke="{colours.frame}"/>{lamps}',
            f'<text x="{width / 2:.0f}" y="23" text-anchor="middle" font-size="12" opacity="0.6">olvido chat</text>',
            *drawn,
            "</svg>\n",
        ]
    )


def runs(row: Any, columns: int, number: int, colours: Colours) -> Iterator[str]:
    """One line: neighbouring cells of one look and width as one piece of text."""
    cells = [(column, row[column]) for column in range(columns) if row[column].data]  # none behind a wide character
    for (look, wide), group in groupby(cells, lambda cell: (style(cell[1], colours), wcwidth(cell[1].data[0]) == 2)):
        run = list(group)
        text = "".join(cell.data for _, cell in run)
        if text.strip():
            x, y = MARGIN + run[0][0] * CELL, MARGIN + BAR + number * LINE + SIZE
            length = len(run) * CELL * (2 if wide else 1)
            yield (
                f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs" '
                f'xml:space="preserve"{look}>{escape(text)}</text>'
            )


def style(cell: Any, colours: Colours) -> str:
    """How a cell looks, as attributes."""
    plain = cell.fg.replace("bright", "")
    fill = colours.named[NAMES.index(plain)] if plain in NAMES else "" if plain == "default" else f"#{cell.fg}"
    looks = {
        "fill": fill,
        "font-weight": "bold" if cell.bold else "",
        "font-style": "italic" if cell.italics else "",
        "text-decoration": "underline" if cell.underscore else "",
        "opacity": "0.6" if cell.blink else "",  # faint: see Terminal
    }
    return "".join(f' {name}="{value}"' for name, value in looks.items() if value)


if __name__ == "__main__":
    main()
