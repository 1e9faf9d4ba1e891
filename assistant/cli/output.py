"""What commands print: JSON for programs, tables for people, plain lines when nobody is looking."""

import json
import sys
from collections.abc import Sequence


def print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that folds to the terminal's width; into a pipe or file, one line a row with tabs between."""
    cleaned = [[one_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in ([*columns], *cleaned):
            print("\t".join(row))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in cleaned:
        table.add_row(*(Text(cell) for cell in row))  # Text: what people wrote is no markup
    Console(highlight=False).print(table)


def one_line(text: str) -> str:
    """Without line breaks, tabs and the control characters that could steer a terminal."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
