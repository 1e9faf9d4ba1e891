"""kill -9 of the daemon at random moments under messages from five chats: each answered once, in order, none lost."""

import asyncio
import json
import random
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pysqlite3

from assistant.line_client import LineClient
from assistant.sockets import socket_file
from assistant.testing import EchoServer, ForkedOlvido, settings_for
from bench import report
from bench.soundness import is_sound

ROUNDS, FULL_ROUNDS = 5, 50
VARIES = ("asked", "messages", "again", "seconds")
CHATS = 5
MOST_WAITING = 3  # messages a chat has on their way; more would only wait
FAULTS = (
    "wrong",
    "chats_out_of_order",
    "stored_lost",
    "stored_twice",
    "stored_unanswered",
    "stored_chats_out_of_order",
    "stored_damaged",
)
LATEST_KILL_SECONDS = 0.4
MOST_ANSWERS = 12  # of a round before the kill


def killed(folder: Path, rounds: int, seed: int) -> dict[str, int]:
    """Runs the rounds on one data folder; every figure of FAULTS has to be 0."""
    chance = random.Random(seed)
    with EchoServer(pause_seconds=0.05) as server:
        environment = settings_for(server, serve__messages_per_minute=1_000_000)
        clients = asyncio.run(_rounds(folder, environment, rounds, chance))
        asked = sum("response_format" not in request.body for request in server.history)
    figures = _answers(clients)
    figures |= {f"stored_{name}": count for name, count in _stored(folder, clients).items()}
    return {"rounds": rounds, "asked": asked, **figures}


async def _rounds(folder: Path, environment: dict[str, str], rounds: int, chance: random.Random) -> list[LineClient]:
    file = socket_file(folder, "line")
    clients = [LineClient(file=file, chat=f"chat{number}") for number in range(CHATS)]
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        for client in clients:
            await stack.enter_async_context(client.connected())
        talking = [asyncio.create_task(_talk(client, stop)) for client in clients]
        olvido = stack.enter_context(
            ForkedOlvido("--data-dir", folder, "serve", environment=environment, errors=folder / "errors")
        )
        for number in range(1, rounds + 1):
            before, answers = (sum(map(count, clients)) for count in (_connections, _answered))
            await asyncio.to_thread(olvido.start)
            await _until(olvido, lambda before=before: sum(map(_connections, clients)) > before)
            wanted = answers + chance.randrange(MOST_ANSWERS)  # 0: while it is still getting ready
            await _until(olvido, lambda wanted=wanted: sum(map(_answered, clients)) >= wanted)
            await asyncio.sleep(chance.uniform(0, LATEST_KILL_SECONDS))
            await asyncio.to_thread(olvido.end, signal.SIGKILL)
            report.progress(number, rounds, "killed")
        stop.set()
        await asyncio.to_thread(olvido.start)
        await _until(olvido, lambda: all(task.done() for task in talking))
        await asyncio.gather(*talking)
        if code := await asyncio.to_thread(olvido.end, signal.SIGTERM):
            raise RuntimeError(f"the last daemon ended with {code}")
    return clients


def _connections(client: LineClient) -> int:
    return client.connections


def _answered(client: LineClient) -> int:
    return len(client.answers)


async def _talk(client: LineClient, stop: asyncio.Event) -> None:
    """Numbered messages, one after the other, a few of them on their way at once."""
    number = 0
    while not stop.is_set():
        number += 1
        await client.send(str(number), f"My note #{client.chat}-{number}# is about trains and tea.")
        if number > MOST_WAITING:
            await client.answer(str(number - MOST_WAITING))
    for last in range(max(1, number - MOST_WAITING), number + 1):
        await client.answer(str(last))


async def _until(olvido: ForkedOlvido, true: Any) -> None:
    while not true():
        olvido.check()
        await asyncio.sleep(0.02)


def _answers(clients: Sequence[LineClient]) -> dict[str, int]:
    """What the clients saw."""
    sent = sum(len(client.answers) for client in clients)
    wrong = out_of_order = 0
    for client in clients:
        numbers = [int(answer) for answer in client.answers]
        out_of_order += numbers != sorted(numbers)
        wrong += sum(f"#{client.chat}-{answer.id}#" not in answer.text for answer in client.answers.values())
    again = sum(client.deliveries.total() - len(client.deliveries) for client in clients)
    return {"messages": sent, "wrong": wrong, "chats_out_of_order": out_of_order, "delivered_again": again}


def _stored(folder: Path, clients: Sequence[LineClient]) -> dict[str, int]:
    """What the file holds: a turn of each side for every message, in order, nothing waiting, nothing damaged."""
    connection = pysqlite3.connect(folder / "people" / "me.db")
    try:
        lost = repeated = unanswered = out_of_order = 0
        for client in clients:
            rows = connection.execute(
                "SELECT message, turn_id, sent_at IS NOT NULL FROM inbox WHERE chat = ? ORDER BY id",
                (f"me/{client.chat}",),
            ).fetchall()
            numbers = [int(row[0]) for row in rows]
            turns = [row[1] for row in rows]
            lost += len(set(client.taken) - {row[0] for row in rows}) + turns.count(None)
            repeated += len(turns) - len(set(turns))
            unanswered += sum(not row[2] for row in rows)
            out_of_order += numbers != sorted(numbers) or turns != sorted(turns)
            roles = connection.execute(
                "SELECT role FROM turns JOIN sessions ON sessions.id = session_id WHERE chat = ? ORDER BY turns.id",
                (f"me/{client.chat}",),
            ).fetchall()
            repeated += [role for (role,) in roles] != ["user", "assistant"] * len(rows)
        names = {"lost": lost, "twice": repeated, "unanswered": unanswered}
        return {**names, "chats_out_of_order": out_of_order, "damaged": int(not is_sound(connection))}
    finally:
        connection.close()


def main(argv: Sequence[str]) -> dict[str, float]:
    """Run the rounds; print a table and a JSON line."""
    parser = report.arguments(__doc__, full="50 rounds, not 5")
    parser.add_argument("--rounds", type=int, metavar="N", help="so many instead")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    rounds = options.rounds or (FULL_ROUNDS if options.full else ROUNDS)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        figures = killed(Path(folder), rounds, options.seed)
    result = {**figures, "seconds": round(time.perf_counter() - began, 1)}
    print(report.table(["figure", "value"], list(result.items())))
    print(json.dumps(result))
    report.save(result, options.json)
    return result


if __name__ == "__main__":
    report.program(main)
