"""The memory of one daemon over a long run: what it has after N messages, and after 3 N.

Growth per message is printed for the second and the third N. Held for each open memory, up to a limit: vectors of turns
and queries (`limits.turn_embeddings_held`, `limits.query_embeddings_held`), texts taken apart (a few thousand), and
the pages SQLite keeps (2 MB for each of two connections).
"""

import asyncio
import json
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from assistant.control import ask_status
from assistant.line_client import LineClient
from assistant.sockets import socket_file
from assistant.testing import EchoServer, settings_for, start_olvido
from bench import report

MESSAGES, FULL_MESSAGES = 60, 1_000
VARIES = ("after_n", "after_3n", "per_message", "mb", "seconds")
RATIOS = ("ratio",)
CHATS = 4


async def long_run(folder: Path, messages: int) -> dict[str, float]:
    """The figures of one daemon that answers three times so many messages of one person."""
    with EchoServer() as server:
        environment = settings_for(server, serve__messages_per_minute=1_000_000, model__summaries="extracted")
        process = start_olvido("--data-dir", folder, "serve", environment=environment)
        clients = [LineClient(file=socket_file(folder, "line"), chat=f"chat{number}") for number in range(CHATS)]
        sizes: list[int] = []
        began = time.monotonic()
        async with AsyncExitStack() as stack:
            stack.callback(process.kill)
            for client in clients:
                await stack.enter_async_context(client.connected())
            for part in range(3):
                await asyncio.gather(*(_talk(client, part, messages // CHATS) for client in clients))
                server.history.clear()
                sizes.append((await ask_status(folder))["memory_bytes"])
                print(f"{(part + 1) * (messages // CHATS * CHATS):,} messages: {sizes[-1] / 1e6:.1f} MB", flush=True)
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.communicate)
        stored = sum(file.stat().st_size for file in (folder / "people").glob("me.db*"))
    each = messages // CHATS * CHATS
    return {
        "messages": 3 * each,
        "mb_after_n": round(sizes[0] / 1e6, 1),
        "mb_after_3n": round(sizes[2] / 1e6, 1),
        "ratio": round(sizes[2] / sizes[0], 3),
        "second_n_kb_per_message": round((sizes[1] - sizes[0]) / 1e3 / each, 1),
        "third_n_kb_per_message": round((sizes[2] - sizes[1]) / 1e3 / each, 1),
        "stored_mb": round(stored / 1e6, 1),
        "seconds": round(time.monotonic() - began, 1),
    }


async def _talk(client: LineClient, part: int, messages: int) -> None:
    for number in range(messages):
        name = f"{part}-{number}"
        await client.ask(
            name, f"My note #{client.chat}-{name}# is about trains and tea in town {part * messages + number}."
        )
        for held in (client.answers, client.pieces, client.taken, client.deliveries):
            held.clear()


def main(argv: Sequence[str]) -> dict[str, float]:
    """Run it; print a table and a JSON line."""
    parser = report.arguments(__doc__, full="3,000 messages, not 180")
    parser.add_argument("--messages", type=int, metavar="N", help="so many instead; three times as many are sent")
    options = parser.parse_args(argv)
    messages = options.messages or (FULL_MESSAGES if options.full else MESSAGES)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(long_run(Path(folder), messages))
    print(report.table(["figure", "value"], list(figures.items())))
    print(json.dumps(figures))
    report.save(figures, options.json)
    return figures


if __name__ == "__main__":
    report.program(main)
