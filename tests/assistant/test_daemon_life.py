"""The daemon through the weather of months: kills, stops, full disks, a model that is gone, clocks, quiet weeks."""

import asyncio
import gc
import json
import resource
import signal
import subprocess
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assistant import logs
from assistant.control import ask_status
from assistant.settings import load_settings
from assistant.testing import (
    ChatReply,
    EchoServer,
    client,
    fails,
    says,
    serving,
    settings_for,
    start_new_olvido,
    start_olvido,
    stored,
)
from assistant.testing_forks import Forked
from bench.daemon_kill import FAULTS, killed
from memory import Memory
from memory.testing import FakeClock


@pytest.fixture
def server():
    with EchoServer() as running:
        yield running


@pytest.fixture
def start(tmp_path, server):
    """Starts the daemon in a process of its own, which does not outlive the test."""
    running = []

    def started(**more: object) -> Forked:
        running.append(start_olvido("--data-dir", tmp_path, "serve", environment=settings_for(server, **more)))
        return running[-1]

    yield started
    for process in running:
        process.kill()
        process.communicate()


# -- kill -9


@pytest.mark.long
def test_killed_five_times_under_five_chats_every_message_is_answered_once_and_in_order(tmp_path):
    figures = killed(tmp_path, rounds=5, seed=7)
    assert figures["messages"] >= 5
    assert {name: figures[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0), figures


# -- stopping


def slow(text: str, seconds: float) -> ChatReply:
    """The first words at once, the end later."""
    return says(text, hang_seconds=seconds)


async def _ended(process: Forked) -> int:
    _, errors = await asyncio.to_thread(process.communicate, timeout=60)
    assert "Traceback" not in errors, errors
    return process.returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_lets_a_reply_under_way_come_to_its_end(server, start, tmp_path, number):
    server.enqueue(slow("All of it arrives.", 1.0))
    process = start()
    async with client(tmp_path).connected() as me:
        await me.send("1", "tell me")
        await me.until(pieces=1)
        process.send_signal(number)
        assert (await me.answer("1")).text == "All of it arrives."
    assert await _ended(process) == 0
    assert not list(tmp_path.glob("*.sock")) and not list((tmp_path / "people").glob("*-wal"))


async def test_a_reply_that_does_not_end_in_time_is_given_after_the_restart(server, start, tmp_path):
    server.enqueue(slow("Too late.", 30))
    process = start(serve__grace_seconds=0.2)
    async with client(tmp_path).connected() as me:
        await me.send("1", "I live in Lyon. #1#")
        await me.until(pieces=2)  # the notice and some words
        process.send_signal(signal.SIGTERM)
        assert await _ended(process) == 0
        assert me.answers == {}
        process = start()
        answer = await me.answer("1")
        assert "#1#" in answer.text and "f1" in answer.said[0][1]  # once more with the notice
        process.send_signal(signal.SIGTERM)
        assert await _ended(process) == 0
    async with Memory.open(tmp_path / "people" / "me.db") as memory:
        turns = await memory.database.fetch_all("SELECT role, content FROM turns ORDER BY id")
        assert [row["role"] for row in turns] == ["user", "assistant"]
        assert len(await memory.facts.list()) == 1


async def test_a_second_signal_ends_at_once(server, start, tmp_path):
    server.enqueue(slow("Never.", 30))
    process = start()
    async with client(tmp_path).connected() as me:
        await me.send("1", "#1#")
        await me.until(pieces=1)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            while not (await ask_status(tmp_path))["stopping"]:
                pass
        process.send_signal(signal.SIGTERM)
        assert await _ended(process) == 128 + signal.SIGTERM


# -- a model that is gone


async def test_model_down_and_back_the_user_is_told_the_words_are_kept_and_retry_answers(server, tmp_path):
    server.enqueue(*[fails(503)] * 4)
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        down = await me.ask("1", "I live in Lyon. #1#")
        assert down.said[0][0] == "notice" and "f1" in down.said[0][1]
        assert down.said[-1][0] == "error" and "again later" in down.said[-1][1]
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        assert "#1#" in (await me.ask("2", "/retry")).text  # also after a restart
        assert "#3#" in (await me.ask("3", "note #3#")).text


async def test_an_address_where_nobody_answers_is_told_in_words_and_the_daemon_goes_on(tmp_path):
    with EchoServer() as gone:
        environment = settings_for(gone, model__retries=0)
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        answer = await me.ask("1", "hello")
        assert answer.said[-1][0] == "error"
        assert (await me.ask("2", "/help")).everything


# -- a disk that is full


@contextmanager
def full_disk(folder: Path) -> Iterator[Path]:
    """A small disk at `folder`; yields a file whose removal makes room."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a disk cannot be mounted here: run as root to see how a full one is dealt with")
    try:
        yield folder / "filler"
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096) == 4096:
                pass
        except OSError:
            pass


async def test_a_full_disk_is_told_and_what_was_taken_is_answered_when_there_is_room(server, tmp_path):
    folder = tmp_path / "small"
    environment = settings_for(server, serve__retry_seconds=0.1, backups__every_hours=0)
    with full_disk(folder) as filler:
        async with serving(folder, environment), client(folder).connected() as me:
            await me.ask("1", "note #1#")
            server.enqueue(says("It does not fit. " * 2000, delay_seconds=0.3))
            server.asked.clear()
            await me.send("2", "note #2#")
            await asyncio.to_thread(server.asked.wait, 20)
            fill(filler)  # after the message was taken, before its reply can be stored
            await me.until(problems=1)
            assert "full" in me.problems[0]
            await me.send("3", "z" * 5_000)
            await me.until(refused=1)  # not taken: the client is told, and has to send it again
            assert "full" in me.refused["3"]
            filler.unlink()
            assert "#2#" in (await me.answer("2")).text
            await me.ask("3", "note #3#")
            assert list(me.answers) == ["1", "2", "3"]


async def test_a_file_that_may_not_grow_loses_nothing(server, tmp_path):
    """Needs no mount: the system refuses larger files for a while."""
    environment = settings_for(server, serve__retry_seconds=0.1, backups__every_hours=0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        await me.ask("1", "note #1#")
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
            await me.send("2", "note #2#")
            await me.until(refused=1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "nothing was changed" in me.refused["2"]
        assert "#2#" in (await me.ask("2", "note #2#")).text


# -- a clock that jumps back


async def test_a_clock_that_jumps_back_changes_neither_order_nor_memory(server, tmp_path):
    clock = FakeClock(datetime(2026, 6, 10, 12, tzinfo=UTC))
    async with serving(tmp_path, settings_for(server), clock) as daemon, client(tmp_path).connected() as me:
        await me.ask("1", "I live in Lyon. #1#")
        await daemon.upkeep.round()
        clock.advance(days=-2)
        await me.ask("2", "note #2#")
        assert "I live in Lyon" in (await me.ask("3", "/facts")).everything
        clock.advance(hours=1)
        await me.ask("4", "note #4#")
        await daemon.upkeep.after_messages()
        await daemon.upkeep.round()
        assert daemon.upkeep.last_backup is not None
        assert daemon.upkeep.last_backup.at == clock()  # the copy of the day after tomorrow counts as none
        assert list(me.answers) == ["1", "2", "3", "4"]
    async with Memory.open(tmp_path / "people" / "me.db", clock=clock) as memory:
        turns = await memory.database.fetch_all("SELECT turn_number FROM turns ORDER BY id")
        assert [row["turn_number"] for row in turns] == [1, 2, 3, 4, 5, 6]


# -- a week and a month

WARM_DAYS = 2  # until everything is loaded that a daemon loads


async def test_a_month_of_idleness_calls_no_model_and_leaves_nothing_behind(server, tmp_path):
    """Section 2: upkeep and housekeeping run, and nobody asks a model when nothing was said."""
    clock = FakeClock()
    environment = settings_for(server)
    async with serving(tmp_path, environment, clock) as daemon, client(tmp_path).connected() as me:
        await me.ask("1", "I live in Lyon. #1#")
        await daemon.upkeep.after_messages()
        calls, before = server.calls, _footprint(daemon)
        for _ in range(30 * 4):
            clock.advance(hours=6)
            await daemon.upkeep.after_messages()
            await daemon.upkeep.round()
        assert server.calls == calls
        grown = _footprint(daemon)
        assert grown["tasks"] <= before["tasks"] and grown["files"] <= before["files"] + 1
        copies = list((tmp_path / "people" / "backups").iterdir())
        assert len(copies) <= 2  # of the first day, and what was ticked off after that; nothing else changed
        async with Memory.open(tmp_path / "people" / "me.db", clock=clock) as memory:
            [episode] = await memory.episodes.list()  # E1: the silent chat is over, and no model was asked
        assert episode.turns == 2


@pytest.mark.long
async def test_a_week_of_ordinary_use_stays_flat_and_bounded(server, tmp_path):
    clock = FakeClock()
    environment = settings_for(server, serve__messages_per_minute=10_000, model__summaries="extracted", backups__keep=3)
    logs.configure(
        load_settings(None, {**environment, "OLVIDO_DATA_DIR": str(tmp_path)}, tmp_path).settings, clock=clock
    )
    sizes, memory, copies = [], [], tmp_path / "people" / "backups"
    try:
        async with serving(tmp_path, environment, clock) as daemon, client(tmp_path).connected() as me:
            for day in range(7):
                for hour in range(24):
                    clock.advance(hours=1)
                    if 8 <= hour < 14:
                        name = f"{day}-{hour}"
                        await me.ask(name, f"On day {day} the train of {hour} was late again. #{name}#")
                        del me.answers[name], me.pieces[:]
                        await daemon.upkeep.after_messages()
                    await daemon.upkeep.round()
                gc.collect()
                if day == WARM_DAYS:
                    tracemalloc.start()  # from here on it counts; counting is slow
                memory.append(tracemalloc.get_traced_memory()[0])
                sizes.append(sum(file.stat().st_size for file in (tmp_path / "people").glob("me.db*")))
                log_files = list((tmp_path / "logs").glob("*.jsonl"))
                assert len(log_files) <= 26 and len(list(copies.iterdir())) <= 3
            calls = server.calls
    finally:
        tracemalloc.stop()
        logs.configure(load_settings(None, {"OLVIDO_DATA_DIR": str(tmp_path)}, tmp_path).settings)
    assert calls == 42  # one a message: nothing in the background asks a model
    assert memory[-1] < 1_500_000, memory  # what the last days added, and did not give back
    assert max(sizes) < 8_000_000, sizes  # an empty memory has 1.3 MB, its log at most 4 MB
    names = sorted(datetime.strptime(file.name, logs.FILE_NAME).replace(tzinfo=UTC) for file in log_files)
    assert (clock() - names[0]).total_seconds() <= 26 * 3600


def _footprint(daemon) -> dict[str, int]:
    gc.collect()
    files = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 0
    return {"tasks": len(asyncio.all_tasks()), "files": files, "chats": daemon.inbox.chats}


# -- secrets


async def test_secrets_are_in_no_log_no_error_and_no_process_title(server, tmp_path):
    key = "kq9-verysecretkey-1234567890"
    server.enqueue(fails(401, f"bad key {key}"))
    environment = settings_for(server, model__api_key=key, logs__level="debug")
    process = start_new_olvido("--data-dir", tmp_path, "serve", environment=environment)
    async with client(tmp_path).connected() as me:
        answer = await me.ask("1", "hello")
        assert answer.said[-1][0] == "error"
        titles = [Path(f"/proc/{process.pid}/{name}") for name in ("cmdline", "comm")]
        shown = b"".join(title.read_bytes() for title in titles if title.exists())
        process.send_signal(signal.SIGTERM)
        _, errors = await asyncio.to_thread(process.communicate)
    written = stored(tmp_path)
    assert key.encode() not in shown + errors.encode() + written + json.dumps(answer.said).encode()
    assert (tmp_path / "logs").stat().st_mode & 0o077 == 0
