"""Copies of memories: taken under load, rotated, brought back, and everything erased."""

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pysqlite3
import pytest

from assistant.backups import back_up, backups_of, due
from assistant.line_client import LineClient
from assistant.settings import Settings, load_settings
from assistant.testing import EchoServer, client, serving, settings_for, start_olvido, stored
from memory import Memory
from memory.copies import forget_in_copy

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
TABLES = ("facts", "fact_events", "turns", "sessions", "summaries", "statements", "segments", "entries", "used_items")


@pytest.fixture
def server():
    with EchoServer() as running:
        yield running


def settings(folder: Path, **more: object) -> Settings:
    given = {f"OLVIDO_{name.upper()}": str(value) for name, value in more.items()}
    return load_settings(None, {**given, "OLVIDO_DATA_DIR": str(folder)}, folder).settings


async def run(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    process = start_olvido("--data-dir", folder, *arguments, environment=environment)
    output, errors = await asyncio.to_thread(process.communicate, timeout=60)
    return process.returncode, output, errors


def content(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything remembered, row by row."""
    connection = pysqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES}
    finally:
        connection.close()


async def add(folder: Path, *facts: str, owner: str = "me") -> None:
    async with Memory.open(folder / "people" / f"{owner}.db") as memory:
        for fact in facts:
            await memory.facts.add(fact)


# -- made


async def test_a_copy_taken_under_load_restores_to_a_clean_and_equal_memory(server, tmp_path):
    environment = settings_for(server, serve__messages_per_minute=10_000, model__summaries="extracted")
    file = tmp_path / "people" / "me.db"
    enough = asyncio.Event()

    async def talk(me: LineClient) -> int:
        number = 0
        while not enough.is_set():
            number += 1
            await me.ask(str(number), f"In house {number} of {me.chat} lives a friend. #{number}#")
        return number

    async with serving(tmp_path, environment), AsyncExitStack() as stack:
        chats = [client(tmp_path, f"chat{number}") for number in range(3)]
        for chat in chats:
            await stack.enter_async_context(chat.connected())
        talking = [asyncio.create_task(talk(chat)) for chat in chats]
        await chats[0].until(taken=4)
        known = {chat.chat: list(chat.answers) for chat in chats}
        code, output, errors = await run(tmp_path, "backup", "--json")
        assert code == 0, errors
        copy = Path(json.loads(output)[0]["file"])
        await chats[0].until(taken=len(chats[0].taken) + 3)  # life goes on
        enough.set()
        counts = await asyncio.gather(*talking)
        calls = server.calls

        saved = content(copy)
        journal = pysqlite3.connect(copy)
        rows = journal.execute("SELECT chat, message, turn_id FROM inbox WHERE answered_at IS NOT NULL").fetchall()
        journal.close()
        assert {(f"me/{chat}", number) for chat, answers in known.items() for number in answers} <= {
            (chat, number) for chat, number, _ in rows
        }  # all that was answered before is in it
        ids = {row[0] for row in saved["turns"]}
        assert all(turn in ids for _, _, turn in rows)

        code, _, errors = await run(tmp_path, "restore", str(copy), "-y")
        assert code == 0, errors
        last = [await chat.ask("after", f"still there? #{chat.chat}#") for chat in chats]
        assert all(f"#{chat.chat}#" in answer.text for chat, answer in zip(chats, last, strict=True))
        assert [len(chat.answers) for chat in chats] == [count + 1 for count in counts]
        assert server.calls == calls + 3  # nothing that waited in the copy was answered a second time
        now = content(file)
        for table in ("turns", "facts", "statements", "summaries"):
            rows = {row[0]: row for row in now[table]}
            kept = [row[0] for row in saved[table]]
            assert set(kept) <= set(rows), table
    for chat in chats:
        assert max(chat.deliveries.values()) == 1


async def test_a_restored_memory_is_the_copy_row_by_row(tmp_path):
    await add(tmp_path, "I live in Lyon", "I like tea")
    copy = back_up(settings(tmp_path), "me", NOW).file
    saved = content(copy)
    await add(tmp_path, "I have a dog")
    assert content(tmp_path / "people" / "me.db") != saved
    code, output, errors = await run(tmp_path, "restore", "-y")
    assert code == 0, errors
    assert content(tmp_path / "people" / "me.db") == saved
    (aside,) = (tmp_path / "people" / "backups").glob("me-replaced-*.db")
    assert str(aside) in output
    assert "I have a dog" in str(content(aside)["facts"])


async def test_copies_are_rotated_and_made_only_when_something_changed(tmp_path):
    given = settings(tmp_path, backups__keep=2, backups__every_hours=24)
    await add(tmp_path, "I live in Lyon")
    await add(tmp_path, "I live in Rome", owner="me-too")
    assert due(given, NOW) == ["me", "me-too"]
    for day in range(4):
        back_up(given, "me", NOW + timedelta(days=day))
    assert [backup.at.day for backup in backups_of(given, "me")] == [7, 6]
    assert backups_of(given, "me-too") == []
    assert due(given, NOW + timedelta(days=9)) == ["me-too"]  # nothing changed since
    await add(tmp_path, "I like tea")
    assert due(given, NOW + timedelta(days=3, hours=23)) == ["me-too"]  # not old enough
    assert due(given, NOW + timedelta(days=9)) == ["me", "me-too"]
    assert due(given, NOW) == ["me", "me-too"]  # a copy of next week counts as none: the clock was set back
    assert due(settings(tmp_path, backups__every_hours=0), NOW) == []


async def test_copies_can_be_listed_and_a_memory_that_is_not_there_is_told(tmp_path):
    await add(tmp_path, "I live in Lyon")
    back_up(settings(tmp_path), "me", NOW)
    code, output, _ = await run(tmp_path, "backup", "--list", "--json")
    assert code == 0 and json.loads(output)[0]["made"] == "2026-05-04T12:00:00+00:00"
    code, _, errors = await run(tmp_path, "--owner", "nobody", "backup")
    assert code == 1 and "Nothing is remembered about nobody" in errors


# -- brought back


async def test_what_was_forgotten_since_stays_forgotten(tmp_path):
    await add(tmp_path, "I live in Zebraquartz", "I like tea")
    back_up(settings(tmp_path), "me", NOW)
    async with Memory.open(tmp_path / "people" / "me.db") as memory:
        await memory.facts.forget("f1")
    code, _, errors = await run(tmp_path, "restore", "-y")
    assert code == 0, errors
    async with Memory.open(tmp_path / "people" / "me.db") as memory:
        assert [fact.fact for fact in await memory.facts.list(None)] == ["I like tea"]
    assert b"Zebraquartz" not in (tmp_path / "people" / "me.db").read_bytes()


async def one_topic(folder: Path, *, ended: bool = True) -> None:
    """A topic about Zebraquartz, and one about tea."""
    async with Memory.open(folder / "people" / "me.db") as memory:
        session = await memory.open_session()
        await memory.add_turn(
            session.id, "user", "The roof of the Zebraquartz cabin leaks, who repairs the cabin roof?"
        )
        await memory.add_turn(session.id, "assistant", "A roofer near the Zebraquartz cabin repairs such a roof.")
        await memory.add_turn(session.id, "user", "Changing the subject, which green tea goes with rice cakes?")
        await memory.add_turn(session.id, "assistant", "Sencha goes well with rice cakes.")
        if ended:
            await memory.open_session()
        await memory.run_pending()


@pytest.mark.parametrize("state", ["compressed", "still in the window"])
async def test_e1_f11_an_episode_forgotten_since_stays_forgotten(tmp_path, state):
    await one_topic(tmp_path, ended=False)
    if state == "compressed":
        async with Memory.open(tmp_path / "people" / "me.db") as memory:
            await memory.open_session()
            await memory.run_pending()
    back_up(settings(tmp_path), "me", NOW)
    async with Memory.open(tmp_path / "people" / "me.db") as memory:
        await memory.open_session()
        await memory.run_pending()
        [episode] = [one for one in await memory.episodes.list() if "Zebraquartz" in str(one.notes)]
        await memory.episodes.forget(episode.id)
    code, _, errors = await run(tmp_path, "restore", "-y")
    assert code == 0, errors
    assert b"zebraquartz" not in (tmp_path / "people" / "me.db").read_bytes().lower()
    async with Memory.open(tmp_path / "people" / "me.db") as memory:
        await memory.open_session()
        await memory.run_pending()
        assert len(await memory.episodes.list()) == 1, "the other topic is there"
        assert await memory.recall("green tea with rice cakes")


async def test_f11_other_turns_with_the_numbers_of_forgotten_ones_stay(tmp_path):
    await one_topic(tmp_path)
    path = tmp_path / "people" / "me.db"
    async with Memory.open(path) as memory:
        [span] = (await memory.episodes.preview_forget("e1")).spans
        elsewhen = replace(span, began_at=span.began_at - timedelta(days=1), ended_at=span.ended_at - timedelta(days=1))
        assert await memory.episodes.forget_again([elsewhen]) == 0
        assert len(await memory.episodes.list()) == 2
        assert await memory.episodes.forget_again([span]) == 1
        assert len(await memory.episodes.list()) == 1


async def test_f11_forgetting_an_episode_reaches_the_copies_when_told(tmp_path):
    await one_topic(tmp_path)
    copy = back_up(settings(tmp_path), "me", NOW).file
    code, listed, _ = await run(tmp_path, "episodes", "search", "cabin roof", "--json")
    assert code == 0
    episode = json.loads(listed)[0]["id"]
    code, _, errors = await run(tmp_path, "episodes", "forget", episode, "-y", "--including-backups")
    assert code == 0, errors
    assert "may still hold it" not in errors
    assert b"zebraquartz" not in copy.read_bytes().lower()
    assert b"zebraquartz" not in stored(tmp_path).lower()


async def test_a_message_that_waits_is_answered_also_when_its_turn_is_younger_than_the_copy(server, tmp_path):
    await add(tmp_path, "I live in Lyon")
    back_up(settings(tmp_path), "me", NOW)
    async with Memory.open(tmp_path / "people" / "me.db") as memory:  # as a process left it that was killed
        journal = memory.journal
        entry, _ = await journal.receive(channel="line", chat="me/me", message="1", content="note #1#")
        session = await memory.open_session("line", "me/me")
        await memory.add_turn(
            session.id, "user", entry.content, also=lambda tx, turn: journal.take(tx, entry, turn, "[]")
        )
    code, _, errors = await run(tmp_path, "restore", "-y")
    assert code == 0, errors
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        assert "#1#" in (await me.answer("1")).text
    assert server.calls == 1


async def test_a_damaged_memory_is_set_aside_and_replaced(tmp_path):
    await add(tmp_path, "I live in Lyon")
    back_up(settings(tmp_path), "me", NOW)
    file = tmp_path / "people" / "me.db"
    file.write_bytes(b"not a database" * 1000)
    code, _, errors = await run(tmp_path, "restore", "-y")
    assert code == 0, errors
    async with Memory.open(file) as memory:
        assert [fact.fact for fact in await memory.facts.list()] == ["I live in Lyon"]
    assert [path.name for path in (tmp_path / "people" / "backups").glob("*.damaged")]


async def test_a_copy_that_is_damaged_is_refused_and_nothing_changes(tmp_path):
    await add(tmp_path, "I live in Lyon")
    copy = tmp_path / "copy.db"
    copy.write_bytes((tmp_path / "people" / "me.db").read_bytes()[:20_000])
    before = (tmp_path / "people" / "me.db").read_bytes()
    code, _, errors = await run(tmp_path, "restore", str(copy), "-y")
    assert code == 1 and "damaged" in errors
    assert (tmp_path / "people" / "me.db").read_bytes() == before


async def test_a_memory_deleted_under_the_daemon_is_brought_back_without_a_restart(server, tmp_path):
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        await me.ask("1", "I live in Lyon. #1#")
        back_up(settings(tmp_path), "me", NOW)
        for file in (tmp_path / "people").glob("me.db*"):
            file.unlink()
        await me.send("2", "I like tea. #2#")
        await me.until(refused=1)
        code, _, errors = await run(tmp_path, "restore", "-y", **settings_for(server))
        assert code == 0, errors
        assert "#3#" in (await me.ask("3", "#3#")).text
        assert "Lyon" in (await me.ask("4", "/facts")).everything


async def test_nothing_is_replaced_or_erased_under_a_conversation_that_is_open(tmp_path):
    await add(tmp_path, "I live in Lyon")
    back_up(settings(tmp_path), "me", NOW)
    async with Memory.open(tmp_path / "people" / "me.db"):
        for command in ("restore", "forget-me"):
            code, _, errors = await run(tmp_path, command, "-y")
            assert code == 1 and "open elsewhere" in errors
    code, _, errors = await run(tmp_path, "restore")
    assert code == 1 and "-y" in errors  # nobody there to ask


# -- erased


async def test_forget_me_erases_a_person_completely_while_the_daemon_runs(server, tmp_path):
    environment = settings_for(server, logs__level="debug")
    async with (
        serving(tmp_path, environment),
        client(tmp_path).connected() as me,
        client(tmp_path, owner="ana").connected() as ana,
    ):
        await me.ask("1", "I live in Zebraquartz. #1#")
        await ana.ask("1", "I live in Rome. #1#")
        back_up(settings(tmp_path), "me", NOW)
        (tmp_path / "repl_history").write_text("I live in Zebraquartz\n")
        code, output, errors = await run(tmp_path, "forget-me", "-y", **environment)
        assert code == 0 and "erased" in output, errors
        assert b"Zebraquartz" not in stored(tmp_path)
        assert not list((tmp_path / "people").rglob("me*"))
        assert "nothing" in (await me.ask("2", "/facts")).everything  # a new life begins
        assert "Rome" in (await ana.ask("2", "/facts")).everything


async def test_forget_me_knows_whom_it_erases(tmp_path):
    async with Memory.open(tmp_path / "people" / "bob.db") as memory:
        await memory.facts.add("I live in Zebraquartz")
    copy = back_up(settings(tmp_path), "bob", NOW).file
    (tmp_path / "people" / "bob.db").unlink()  # lost; all there is of him is a copy
    async with Memory.open(tmp_path / "people" / "ana.db"):
        pass
    (tmp_path / "logs").mkdir(exist_ok=True)
    (tmp_path / "logs" / "x").touch()
    code, output, errors = await run(tmp_path, "--owner", "zoe", "forget-me", "-y")
    assert code == 1 and "Nothing is stored about zoe" in errors and "ana" in errors and not output
    assert (tmp_path / "logs" / "x").exists()
    (tmp_path / "people" / ".ana-restoring.db").touch()  # of a restore that was cut off
    code, output, _ = await run(tmp_path, "--owner", "ana", "forget-me", "-y")
    assert code == 0 and "erased" in output and not list((tmp_path / "people").glob("*ana*"))
    assert copy.exists()
    code, *_ = await run(tmp_path, "--owner", "bob", "forget-me", "-y")
    assert code == 0 and not copy.exists()


async def test_f11_forgetting_in_a_chat_reaches_the_copies(server, tmp_path):
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        await me.ask("1", "I live in Zebraquartz. #1#")
        copy = back_up(settings(tmp_path), "me", NOW).file
        assert b"Zebraquartz" in copy.read_bytes()
        await me.ask("2", "/forget f1")
        await me.ask("3", "/forget f1")
        await me.ask("4", "/help")  # the preview was delivered, and is not waiting any more
        assert b"Zebraquartz" not in copy.read_bytes()
    assert b"Zebraquartz" not in stored(tmp_path)


async def test_f11_a_copy_made_before_the_fact_was_learnt_loses_its_words_too(tmp_path):
    """The journal held the message already: by the fact alone nothing would be found in the copy."""
    file = tmp_path / "people" / "me.db"
    async with Memory.open(file) as memory:
        session = await memory.open_session("line", "me/me")
        said = "I live in Zebraquartz."
        await memory.journal.receive(channel="line", chat="me/me", message="1", content=said)
        copy = back_up(settings(tmp_path), "me", NOW).file
        await memory.add_turn(session.id, "user", said)
        await memory.run_pending()
        learnt = [fact for fact in await memory.facts.list() if "Zebraquartz" in fact.fact]
        assert learnt and b"Zebraquartz" in copy.read_bytes()
        gone = await memory.facts.forget(learnt[0].id)
        assert await forget_in_copy(copy, gone.wordings) == ()
    assert b"Zebraquartz" not in stored(tmp_path)
