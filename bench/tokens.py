"""What a request costs at turn 20, 200 and 2,000, beside sending the whole history and its last 4,000 tokens.

The mean of the 20 requests from a turn on stands for it. The same stretch of talk is held at each of these turns, so
that only the age of the conversation differs. With --free anything is talked about anywhere: then the subject, the
language and the number of questions at a place move the mean of a single conversation by up to a fifth either way.
What is saved at turn 20 is taken from the requests right before and after it, of ten conversations with long turns:
twenty requests later the history is twice as long, and the share would flatter.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import mean

from bench.phrases import Line, conversation
from bench.report import arguments, program, save, table
from memory import Memory
from memory.static import shipped_prompt
from memory.testing import FakeClock
from memory.tokens import count_tokens

NEIGHBOURS = 20
LAST_TOKENS = 4000
SHORT = (1, 1, 1, 2, 2)  # phrases in a message: about 40 tokens
LONG = tuple(range(8, 20))  # about 400
STATIC = count_tokens(shipped_prompt().text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the request of one user turn cost, and what the naive ways would have cost."""

    turn: int
    message: int
    tokens: int
    provider_tokens: int
    history: int

    @property
    def last(self) -> int:
        """The static prompt and as much of the end of the history as fits."""
        return min(self.history, LAST_TOKENS)


def script(seed: int, lengths: Sequence[int], points: Sequence[int], free: bool) -> list[Line]:
    """What is said: a conversation past the last point; the stretch of the first point is held again at the others."""
    stretch = 2 * NEIGHBOURS
    lines = list(islice(conversation(seed, lengths), points[-1] + stretch))
    first = points[0] - 1
    for point in () if free else points[1:]:
        lines[point - 1 : point - 1 + stretch] = lines[first : first + stretch]
    return lines


async def talk(folder: Path, lines: Sequence[Line]) -> list[Request]:
    """The requests of a conversation, compressed as it goes."""
    clock, requests = FakeClock(), []
    history = STATIC + 6  # the system message and the request itself
    async with Memory.open(folder / "person.db", clock=clock) as memory:
        session = await memory.open_session()
        for number, line in enumerate(lines, 1):
            clock.advance(minutes=1)
            turn = await memory.add_turn(session.id, line.role, line.content)  # type: ignore[arg-type]
            history += turn.token_count + 3
            if line.role == "assistant":
                await memory.run_pending()
                continue
            context = await memory.assemble(session.id)
            requests.append(
                Request(
                    turn=number,
                    message=turn.token_count,
                    tokens=context.tokens,
                    provider_tokens=context.provider_tokens,
                    history=history,
                )
            )
    return requests


def hold(scripts: Iterable[Sequence[Line]]) -> list[list[Request]]:
    """The requests of each conversation."""
    held = []
    for number, lines in enumerate(scripts, 1):
        with tempfile.TemporaryDirectory() as folder:
            held.append(asyncio.run(talk(Path(folder), lines)))
        print(f"  conversation {number}, {len(lines):,} turns", file=sys.stderr, flush=True)
    return held


def at(conversations: Sequence[Sequence[Request]], turn: int) -> list[Request]:
    """The requests that stand for a turn, of all conversations."""
    return [
        request
        for requests in conversations
        for request in [each for each in requests if each.turn >= turn][:NEIGHBOURS]
    ]


def tokens_at(conversations: Sequence[Sequence[Request]], turn: int) -> float:
    """What a request costs there."""
    return mean(request.tokens for request in at(conversations, turn))


def history_at(conversations: Sequence[Sequence[Request]], turn: int) -> float:
    """What sending everything that was said would cost there."""
    return mean(request.history for request in at(conversations, turn))


def spread(conversations: Sequence[Sequence[Request]], points: Sequence[int]) -> float:
    """The dearest of these turns by the cheapest: 1 is flat."""
    means = [tokens_at(conversations, point) for point in points]
    return max(means) / min(means)


def saved_at(conversations: Sequence[Sequence[Request]], turn: int) -> float:
    """The share saved there against sending the whole history."""
    return 1 - tokens_at(conversations, turn) / history_at(conversations, turn)


def turn_tokens(requests: Sequence[Request]) -> float:
    """The mean length of a turn, the assistant's included."""
    last = requests[-1]
    return (last.history - STATIC - 6) / last.turn - 3


def show(title: str, conversations: Sequence[Sequence[Request]], points: Sequence[int]) -> None:
    """Print a table of means."""
    headings = ["turn", "message", "tokens a request", "last 4,000", "whole history", "saved"]
    rows: list[list[object]] = []
    for point in points:
        near = at(conversations, point)
        figures = [
            mean(values) for values in zip(*((r.message, r.tokens, r.last, r.history) for r in near), strict=True)
        ]
        rows.append([point, *map(round, figures), f"{saved_at(conversations, point):.0%}"])
    print(f"{title}:\n{table(headings, rows)}\n")


def main(argv: Sequence[str]) -> dict[str, float]:
    """Hold the conversations; print what their requests cost."""
    parser = arguments(__doc__, full="three conversations of 2,000 turns, not one of 400")
    parser.add_argument("--free", action="store_true", help="anything is talked about anywhere")
    options = parser.parse_args(argv)
    points, seeds = ((20, 200, 2000), (1, 2, 3)) if options.full else ((20, 200, 400), (1,))
    short = hold(script(seed, SHORT, points, options.free) for seed in seeds)
    long = [requests[-2:] for requests in hold(list(islice(conversation(seed, LONG), 22)) for seed in range(1, 11))]
    every = [request for requests in (*short, *long) for request in requests]
    ordinary = [request for requests in short for request in requests]
    show("short turns", short, points)
    show("long turns, right at turn 20", long, (19,))
    result = {
        "mean tokens of a turn": mean(turn_tokens(requests) for requests in short),
        **{f"tokens a request at turn {point}": tokens_at(short, point) for point in points},
        **{f"tokens of the whole history at turn {point}": history_at(short, point) for point in points},
        "dearest by cheapest": spread(short, points),
        **{f"dearest by cheapest, seed {seed}": spread([own], points) for seed, own in zip(seeds, short, strict=True)},
        **{f"share saved at turn {point}": saved_at(short, point) for point in points},
        "most beyond the static prompt": max(request.tokens - STATIC for request in ordinary),
        "long turns: mean tokens of a turn": mean(turn_tokens(requests) for requests in long),
        "long turns: tokens a request at turn 20": tokens_at(long, 19),
        "long turns: share saved at turn 20": saved_at(long, 19),
        "long turns: most beyond the static prompt": max(r.tokens - STATIC for requests in long for r in requests),
        "most tokens of any request": max(request.tokens for request in every),
        "most provider tokens of any request": max(request.provider_tokens for request in every),
    }
    result = {name: round(value, 3) for name, value in result.items()}
    print(table(["figure", "value"], [[name, value] for name, value in result.items()]))
    save(result, options.json)
    return result


if __name__ == "__main__":
    program(main)
