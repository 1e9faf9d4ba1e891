"""Small plots of text: bars beside numbers, and a curve of bars against a line."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_ROWS = 10


def bars(values: Mapping[str, int], width: int) -> list[str]:
    """A line a value, largest first: its name, its number, and a bar as long as its share of the largest."""
    named = max(map(len, values), default=0)
    digits = max((len(f"{value:,}") for value in values.values()), default=0)
    room = max(1, width - named - digits - 4)
    largest = max(values.values(), default=0)
    ordered = sorted(values.items(), key=lambda item: -item[1])
    return [f"{name:<{named}}  {value:>{digits},}  {_bar(value, largest, room)}".rstrip() for name, value in ordered]


def _bar(value: int, largest: int, room: int) -> str:
    eighths = round(value / largest * room * 8) if largest else 0
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def curve(filled: Sequence[float], dotted: Sequence[float], width: int) -> list[str]:
    """Two series over time on one logarithmic scale: one as columns, one as dots above them; many are averaged."""
    columns = max(1, width - 8)
    below, above = _averaged(filled, columns), _averaged(dotted, columns)
    positive = [value for value in (*below, *above) if value > 0]
    if not positive:
        return []
    low = 2.0 ** math.floor(math.log2(min(positive)))
    high = max(2.0 ** math.ceil(math.log2(max(positive))), low * 2)
    top = math.log2(high / low)

    def height(value: float) -> float:
        return max(0.0, math.log2(value / low) / top * _ROWS) if value > 0 else 0.0

    lines = []
    for row in range(_ROWS, 0, -1):
        cells = [_cell(height(bar), height(dot), row) for bar, dot in zip(below, above, strict=True)]
        label = _short(low * 2 ** (row / _ROWS * top)) if row % 3 == 1 or row == _ROWS else ""
        lines.append(f"{label:>6} ┤{''.join(cells)}".rstrip())
    return [*lines, f"{_short(low):>6} └{'─' * len(below)}"]


def _cell(bar: float, dot: float, row: int) -> str:
    if row - 1 < bar:
        return _HEIGHTS[max(1, min(8, round((bar - row + 1) * 8)))]
    return "·" if row - 1 < dot <= row or (dot > row and row == _ROWS) else " "


def _averaged(values: Sequence[float], columns: int) -> list[float]:
    """At most so many columns; each the mean of its share of the values."""
    if len(values) <= columns:
        return list(values)
    bounds = [round(place * len(values) / columns) for place in range(columns + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(bounds)]


def _short(number: float) -> str:
    return f"{number / 1000:.3g}k" if number >= 1000 else f"{number:.3g}"
