"""F6, section 6: that a fact was asked about is held, visible at once and written in batches; words at once."""

import subprocess
import sys
from datetime import timedelta

from memory.stores import turns as turn_rows
from memory.testing import FakeClock

KILLED = """
import asyncio, os, signal, sys
from datetime import timedelta
from memory import Memory
from memory.testing import FakeClock
from memory.values import Request

async def main():
    clock = FakeClock()
    async with Memory.open(sys.argv[1], clock=clock) as memory:
        session = await memory.open_session()
        await memory.add_turn(session.id, "user", "I live in Porto.")
        clock.advance(days=2)
        await memory.add_turn(session.id, "user", "Where do I live?")
        await memory.accounts.record(Request(at=clock(), kind="model", session_id=session.id, tokens=700))
        if sys.argv[2] == "rest":
            await memory.run_pending()
        if sys.argv[2] == "five minutes":
            clock.advance(minutes=6)
            await memory.accounts.record(Request(at=clock(), kind="model", session_id=session.id, tokens=700))
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_killed_at_most_the_batch_is_lost_and_never_what_was_said(open_memory, tmp_path):
    """Killed before the batch is written only numbers are lost; at rest and after five minutes they are there."""
    start = FakeClock()()
    for when, asked, requests in (("before", 0, 0), ("rest", 2, 1), ("five minutes", 2, 2)):
        path = tmp_path / f"{when}.db"
        killed = subprocess.run([sys.executable, "-c", KILLED, str(path), when], check=False)  # noqa: ASYNC221
        assert killed.returncode == -9
        async with open_memory(path=path) as memory:
            (fact,) = await memory.facts.list()
            assert fact.fact == "I live in Porto"
            assert fact.last_confirmed_at - start == timedelta(days=asked)
            assert len(await memory.accounts.between()) == requests
            assert [turn.content for turn in await turn_rows.with_content(memory.database)] == [
                "I live in Porto.",
                "Where do I live?",
            ]


async def test_what_is_held_is_visible_at_once_and_written_at_the_end(open_memory, tmp_path):
    clock = FakeClock()
    async with open_memory(clock, tmp_path / "me.db") as memory:
        session = await memory.open_session()
        await memory.add_turn(session.id, "user", "I live in Porto.")
        clock.advance(days=2)
        turn = await memory.add_turn(session.id, "user", "Where do I live?")
        (fact,) = await memory.facts.list()
        assert fact.last_confirmed_at == clock() == turn.confirmed[0].last_confirmed_at
        assert memory.facts.confirmations.held == {fact.id: clock()}
    async with open_memory(clock, tmp_path / "me.db") as memory:
        assert await memory.facts.list() == [fact]
        assert [event.action for event in await memory.facts.history(fact.id)].count("confirmed") == 1


async def test_what_is_held_does_not_come_back_for_a_fact_that_is_gone(open_memory):
    """F7, F11: a confirmation that waits revives nothing that was replaced or forgotten."""
    clock = FakeClock()
    async with open_memory(clock) as memory:
        session = await memory.open_session()
        await memory.add_turn(session.id, "user", "I live in Porto.")
        clock.advance(days=2)
        await memory.add_turn(session.id, "user", "Where do I live?")
        await memory.add_turn(session.id, "user", "I moved to Rome.")
        await memory.add_turn(session.id, "user", "Where do I live?")
        (fact,) = await memory.facts.list()
        assert "Rome" in fact.fact
        await memory.facts.forget(fact.id)
        await memory.run_pending()
        assert await memory.facts.list() == []
