"""What a request costs at turn 20, 200 and 2,000, beside sending the whole history and its last 4,000 tokens."""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import mean

from bench.phrases import conversation
from bench.report import arguments, save, table
from memory import Memory
from memory.static import shipped_prompt
from memory.testing import FakeClock
from memory.tokens import count_tokens

NEIGHBOURS = 20  # requests whose mean stands for a turn: those from that turn on
LAST_TOKENS = 4000
STATIC = count_tokens(shipped_prompt().text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the request of one user turn cost, and what the naive ways would have cost."""

    turn: int
    tokens: int
    provider_tokens: int
    history: int

    @property
    def last(self) -> int:
        """The static prompt and as much of the end of the history as fits."""
        return min(self.history, LAST_TOKENS)


async def talk(folder: Path, turns: int, sentences: int) -> list[Request]:
    """The requests of a conversation, compressed as it goes."""
    clock, requests = FakeClock(), []
    history = STATIC + 6  # the system message and the request itself
    async with Memory.open(folder / f"tokens{sentences}.db", clock=clock) as memory:
        session = await memory.open_session()
        for number, line in enumerate(islice(conversation(sentences=sentences), turns), 1):
            clock.advance(minutes=1)
            turn = await memory.add_turn(session.id, line.role, line.content)  # type: ignore[arg-type]
            history += turn.token_count + 3
            if line.role == "user":
                context = await memory.assemble(session.id)
                requests.append(
                    Request(
                        turn=number,
                        tokens=context.tokens,
                        provider_tokens=context.provider_tokens,
                        history=history,
                    )
                )
            else:
                await memory.run_pending()
    return requests


def at(requests: Sequence[Request], turn: int) -> list[Request]:
    """The requests that stand for a turn."""
    return [request for request in requests if request.turn >= turn][:NEIGHBOURS]


def row(requests: Sequence[Request], turn: int) -> list[object]:
    """A line of the table: means over the neighbouring requests."""
    near = at(requests, turn)
    ours, history = mean(request.tokens for request in near), mean(request.history for request in near)
    last = mean(request.last for request in near)
    return [turn, round(ours), round(last), round(history), f"{1 - ours / history:.0%}"]


def main(argv: Sequence[str]) -> dict[str, float]:
    """Hold both conversations; print what requests cost."""
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="2,000 turns instead of 400")
    options = parser.parse_args(argv)
    turns = 2000 if options.full else 400
    points = [point for point in (20, 200, 2000) if point <= turns] + ([] if options.full else [turns])
    with tempfile.TemporaryDirectory() as folder:
        short = asyncio.run(talk(Path(folder), turns + 2 * NEIGHBOURS, 2))
        long = asyncio.run(talk(Path(folder), 20 + 2 * NEIGHBOURS, 16))
    headings = ["turn", "tokens a request", "last 4,000", "whole history", "saved"]
    rows = [row(short, point) for point in points]
    words = mean(later.history - sooner.history for sooner, later in zip(short, short[1:], strict=False)) / 2 - 3
    print(f"short turns, {words:.0f} tokens on average:\n{table(headings, rows)}")
    words_long = mean(later.history - sooner.history for sooner, later in zip(long, long[1:], strict=False)) / 2 - 3
    print(f"\nlong turns, {words_long:.0f} tokens on average:\n{table(headings, [row(long, 20)])}")
    means = {point: mean(request.tokens for request in at(short, point)) for point in points}
    long_at_20 = at(long, 20)
    result = {
        "mean tokens of a turn": round(words, 1),
        **{f"tokens a request at turn {point}": round(value, 1) for point, value in means.items()},
        "largest mean over smallest": round(max(means.values()) / min(means.values()), 3),
        f"share saved at turn {points[-1]}": round(1 - means[points[-1]] / at(short, points[-1])[0].history, 3),
        "most beyond the static prompt": max(request.tokens - STATIC for request in short),
        "most tokens of any request": max(request.tokens for request in short + long),
        "most provider tokens of any request": max(request.provider_tokens for request in short + long),
        "long turns: mean tokens of a turn": round(words_long, 1),
        "long turns: tokens a request at turn 20": round(mean(request.tokens for request in long_at_20), 1),
        "long turns: first request from turn 20 on": long_at_20[0].tokens,
        "long turns: share saved at turn 20": round(
            1 - mean(request.tokens for request in long_at_20) / mean(request.history for request in long_at_20), 3
        ),
        "long turns: share saved by the first request from turn 20 on": round(
            1 - long_at_20[0].tokens / long_at_20[0].history, 3
        ),
    }
    print("\n" + table(["figure", "value"], [[name, value] for name, value in result.items()]))
    save(result, options.json)
    return result


if __name__ == "__main__":
    main(sys.argv[1:])
