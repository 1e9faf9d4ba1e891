"""The journal: what came in is neither lost nor taken twice, whatever moment the process ends at (section 6)."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

import pytest

from memory import Memory
from memory.database import Transaction
from memory.errors import DatabaseFull
from memory.testing import FakeClock
from memory.values import Received, Turn

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]


async def receive(memory: Memory, message: str, content: str = "hello", **more: bool) -> tuple[Received, bool]:
    return await memory.journal.receive(channel="line", chat="me", message=message, content=content, **more)


async def test_a_message_that_is_delivered_again_is_recognised(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        first, new = await receive(memory, "1", "hello")
        again, new_again = await receive(memory, "1", "something else")
        assert (new, new_again) == (True, False)
        assert again == first


async def test_messages_of_a_chat_come_out_in_order_until_they_are_sent(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        for number in ("3", "1", "2"):
            await receive(memory, number)
        order = []
        while entry := await memory.journal.next("line", "me"):
            await memory.journal.answer(entry, "[]")
            same = await memory.journal.next("line", "me")
            assert same is not None and same.id == entry.id and same.answered  # its reply has to be sent first
            await memory.journal.sent(entry)
            order.append(entry.message)
        assert order == ["3", "1", "2"]
        assert await memory.journal.waiting() == []


async def test_the_turn_and_its_tick_in_the_journal_are_one_transaction(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        session = await memory.open_session("line", "me")
        entry, _ = await receive(memory, "1", "I live in Lyon.")

        async def fails(tx: Transaction, turn: Turn) -> None:
            await memory.journal.take(tx, entry, turn, "[]")
            raise DatabaseFull("no room")

        with pytest.raises(DatabaseFull):
            await memory.add_turn(session.id, "user", entry.content, also=fails)
        assert await memory.facts.list() == []
        waiting = await memory.journal.next("line", "me")
        assert waiting is not None and waiting.turn_id is None and waiting.content == "I live in Lyon."

        async def works(tx: Transaction, turn: Turn) -> None:
            await memory.journal.take(tx, entry, turn, json.dumps([{"kind": "notice", "text": turn.learned[0].id}]))

        turn = await memory.add_turn(session.id, "user", entry.content, also=works)
        waiting = await memory.journal.next("line", "me")
        assert waiting is not None and waiting.turn_id == turn.id
        assert json.loads(waiting.said) == [{"kind": "notice", "text": "f1"}]
        assert waiting.content == ""  # the turn has the words


async def test_what_is_said_in_private_is_not_written_down_from_the_command_on(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        await receive(memory, "1", "/private", toggles_private=True)
        secret, _ = await receive(memory, "2", "zebraquartz")  # before the command was answered
        await receive(memory, "3", "/private", toggles_private=True)
        open_again, _ = await receive(memory, "4", "good morning")
        assert (secret.private, secret.content) == (True, "")
        assert (open_again.private, open_again.content) == (False, "good morning")


async def test_f11_forgetting_reaches_messages_and_replies_that_wait(open_memory: OpenMemory) -> None:
    async with open_memory() as memory:
        fact = await memory.facts.add("I live in Zebraquartz")
        entry, _ = await receive(memory, "1", "Is I live in Zebraquartz still what you know?")
        other, _ = await receive(memory, "2", "x")
        await memory.journal.answer(other, json.dumps([{"kind": "piece", "text": "You say: I live in Zebraquartz."}]))
        await memory.facts.forget(fact.id)
        path = memory.database.path
        waiting = await memory.journal.next("line", "me")
        assert waiting is not None and waiting.id == entry.id and "Zebraquartz" not in waiting.content
    assert b"Zebraquartz" not in b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


async def test_the_ids_of_answered_messages_go_after_their_time(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    async with open_memory(clock) as memory:
        entry, _ = await receive(memory, "1")
        await memory.journal.answer(entry, "[]")
        await memory.journal.sent(entry)
        await receive(memory, "2")
        clock.advance(days=31)
        assert await memory.journal.expire(30) == 1
        assert [count for _, _, count in await memory.journal.waiting()] == [1]  # what waits is never expired


async def test_a_session_goes_on_after_a_restart_and_begins_anew_after_a_long_silence(open_memory: OpenMemory) -> None:
    clock = FakeClock()
    idle = timedelta(hours=8)
    async with open_memory(clock) as memory:
        first = await memory.resume_session("line", "me", idle=idle)
        await memory.add_turn(first.id, "user", "hello")
        path = memory.database.path
    async with open_memory(clock, path=path) as memory:
        clock.advance(hours=7)
        assert (await memory.resume_session("line", "me", idle=idle)).id == first.id
        clock.advance(hours=-30)  # a clock that jumps back is no silence
        assert (await memory.resume_session("line", "me", idle=idle)).id == first.id
        clock.advance(hours=40)
        assert (await memory.resume_session("line", "me")).id == first.id
        assert (await memory.resume_session("line", "me", idle=idle)).id != first.id
