"""Fifty chats send at once for a minute against a slow model: memory bounded, order kept, nobody starved.

Known to grow up to a limit, for each open memory: the pages SQLite keeps (2 MB for each of its two connections), the
embeddings of its turns (`limits.turn_embeddings_held`) and its chats (`serve.open_chats`). Growth per message is
printed for the middle and the last third of the run; a minute is too short to fill all of that for eight memories.
That one memory comes to an end of its growth is shown by `bench/long_run.py`.
"""

import asyncio
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from assistant.control import ask_status
from assistant.line_client import LineClient
from assistant.sockets import socket_file
from assistant.testing import EchoServer, settings_for, start_new_olvido
from bench import report

SECONDS, FULL_SECONDS = 15.0, 60.0
VARIES = ("messages", "per_second", "of_a_chat", "seconds", "mb", "per_message")
MOST_WAITING = 2  # messages a chat has on their way
SAMPLE_SECONDS = 1.0


@dataclass(slots=True, kw_only=True)
class Chat:
    """One chat, and how long each of its messages took."""

    client: LineClient
    seconds: list[float] = field(default_factory=list)
    sent: dict[str, float] = field(default_factory=dict)

    async def talk(self, until: float) -> None:
        """Numbered messages until the time is up, then the rest of the answers."""
        number = 0
        while time.monotonic() < until:
            number += 1
            self.sent[str(number)] = time.monotonic()
            await self.client.send(str(number), f"My note #{self.client.chat}-{number}# is about trains and tea.")
            if number >= MOST_WAITING:
                await self._answer(number - MOST_WAITING + 1)
        for last in range(max(1, number - MOST_WAITING + 2), number + 1):
            await self._answer(last)

    async def _answer(self, number: int) -> None:
        await self.client.answer(str(number))
        self.seconds.append(time.monotonic() - self.sent[str(number)])

    @property
    def in_order(self) -> bool:
        """Whether the answers came in the order of the messages, each to its own."""
        answers = list(self.client.answers.values())
        numbers = [int(answer.id) for answer in answers]
        right = all(f"#{self.client.chat}-{answer.id}#" in answer.text for answer in answers)
        return right and numbers == sorted(numbers)


async def load(folder: Path, *, chats: int, people: int, seconds: float, pause: float) -> dict[str, float]:
    """The figures of one run; chats are spread over so many people."""
    with EchoServer(pause_seconds=pause) as server:
        environment = settings_for(server, serve__messages_per_minute=100_000, serve__open_people=8)
        process = start_new_olvido("--data-dir", folder, "serve", environment=environment)
        file = socket_file(folder, "line")
        talking = [
            Chat(client=LineClient(file=file, chat=f"chat{number}", owner=f"person{number % people}"))
            for number in range(chats)
        ]
        memory: list[tuple[int, int]] = []
        async with AsyncExitStack() as stack:
            stack.callback(process.kill)
            for chat in talking:
                await stack.enter_async_context(chat.client.connected())
            await talking[0].client.ask("0", "#ready#")  # everything is loaded
            del talking[0].client.answers["0"]
            watching = asyncio.create_task(_watch(folder, memory))
            began = time.monotonic()
            await asyncio.gather(*(chat.talk(began + seconds) for chat in talking))
            took = time.monotonic() - began
            watching.cancel()
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.communicate)
    return _figures(talking, memory, took)


async def _watch(folder: Path, memory: list[tuple[int, int]]) -> None:
    """Messages answered so far, and bytes."""
    while True:
        status = await ask_status(folder)
        memory.append((status["answered"], status["memory_bytes"]))
        print(f"  answered {status['answered']:,}", file=sys.stderr, flush=True)
        await asyncio.sleep(SAMPLE_SECONDS)


def _figures(chats: Sequence[Chat], memory: Sequence[tuple[int, int]], took: float) -> dict[str, float]:
    seconds = sorted(second for chat in chats for second in chat.seconds)
    counts = [len(chat.client.answers) for chat in chats]
    third = len(memory) // 3
    return {
        "chats": len(chats),
        "messages": sum(counts),
        "messages_per_second": round(sum(counts) / took, 1),
        "least_of_a_chat": min(counts),
        "most_of_a_chat": max(counts),
        "median_seconds": round(statistics.median(seconds), 2),
        "p95_seconds": round(seconds[int(len(seconds) * 0.95)], 2),
        "longest_seconds": round(seconds[-1], 2),
        "chats_out_of_order": sum(not chat.in_order for chat in chats),
        "first_memory_mb": round(memory[0][1] / 1e6),
        "most_memory_mb": round(max(size for _, size in memory) / 1e6),
        "last_memory_mb": round(memory[-1][1] / 1e6),
        "middle_kb_per_message": _growth(memory[third : 2 * third + 1]),
        "last_kb_per_message": _growth(memory[2 * third :]),
        "seconds": round(took, 1),
    }


def _growth(memory: Sequence[tuple[int, int]]) -> float:
    """How many kilobytes the process grew by for each message it answered."""
    messages = memory[-1][0] - memory[0][0]
    return round((memory[-1][1] - memory[0][1]) / 1e3 / max(1, messages), 1)


def main(argv: Sequence[str]) -> dict[str, float]:
    """Run it; print a table and a JSON line."""
    parser = report.arguments(__doc__, full="a minute, not 15 seconds")
    parser.add_argument("--chats", type=int, default=50)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--seconds", type=float, metavar="S", help="so long instead")
    parser.add_argument("--pause", type=float, default=1.0, help="how slow the model is, in seconds")
    options = parser.parse_args(argv)
    seconds = options.seconds or (FULL_SECONDS if options.full else SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(
            load(
                Path(folder),
                chats=options.chats,
                people=options.people,
                seconds=seconds,
                pause=options.pause,
            )
        )
    print(report.table(["figure", "value"], list(figures.items())))
    print(json.dumps(figures))
    report.save(figures, options.json)
    return figures


if __name__ == "__main__":
    report.program(main)
