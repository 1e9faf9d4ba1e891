"""The daemon: order, one answer each, limits, one per folder, and parts that live and end together."""

import asyncio
import json
import os
import threading
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from assistant.channels import Mailbox
from assistant.daemon import Daemon
from assistant.errors import AlreadyServing, PartEnded
from assistant.line_client import LineClient
from assistant.model import ChatModel
from assistant.open_people import People
from assistant.settings import load_settings
from assistant.sockets import listening, socket_file
from assistant.testing import Asked, EchoServer, client, says, serving, settings_for, start_olvido, stored
from memory import Memory
from memory.ports import system_clock


@pytest.fixture
def server():
    with EchoServer() as running:
        yield running


def run(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    process = start_olvido("--data-dir", folder, *arguments, environment=environment)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


# -- one answer each, in order


async def test_messages_of_a_chat_are_answered_in_order_and_the_reply_streams(server, tmp_path):
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        for number in range(5):
            await me.send(str(number), f"note #{number}#")
        for number in range(5):
            assert f"#{number}#" in (await me.answer(str(number))).text
        assert list(me.answers) == ["0", "1", "2", "3", "4"]
        assert "".join(me.pieces) == "".join(answer.text for answer in me.answers.values())


async def test_different_chats_are_answered_at_the_same_time(tmp_path):
    both = threading.Barrier(2, timeout=20)

    class Together(EchoServer):
        def answer(self, asked: Asked):
            both.wait()  # nobody gets an answer before the other has asked
            return super().answer(asked)

    with Together() as server:
        async with (
            serving(tmp_path, settings_for(server)),
            client(tmp_path, "a").connected() as a,
            client(tmp_path, "b").connected() as b,
        ):
            answers = await asyncio.gather(a.ask("1", "#a#"), b.ask("1", "#b#"))
            assert ["#a#" in answers[0].text, "#b#" in answers[1].text] == [True, True]


async def test_a_message_delivered_again_is_answered_once(server, tmp_path):
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        first = await me.ask("1", "note #1#")
        await me.send("1", "note #1#")
        await me.ask("2", "note #2#")
        assert me.answers["1"] == first
        assert me.deliveries == {"1": 1, "2": 1}
    assert server.calls == 2


async def test_a_reply_nobody_took_is_sent_when_somebody_is_there_again(server, tmp_path):
    environment = settings_for(server, serve__delivery_seconds=0.2)
    async with serving(tmp_path, environment), client(tmp_path, acknowledges=False).connected() as deaf:
        await deaf.ask("1", "note #1#")
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        assert "#1#" in (await me.answer("1")).text
        await me.ask("2", "/help")  # so that the first one is ticked off
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        await me.ask("3", "note #3#")
        assert "1" not in me.answers  # what was acknowledged is not sent again
    assert server.calls == 2


async def test_the_notices_of_a_message_are_in_the_reply_and_the_talk_goes_on_after_a_restart(server, tmp_path):
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        saved = await me.ask("1", "I live in Lyon. #1#")
        assert saved.said[0][0] == "notice" and "/undo f1" in saved.said[0][1]
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        await me.ask("2", "and what now? #2#")
    sent = [message["content"] for message in server.history[-1].body["messages"]]
    assert any("I live in Lyon. #1#" in text for text in sent)  # the window is still there


async def test_a_command_that_must_not_run_twice_is_not(server, tmp_path):
    async with Memory.open(tmp_path / "people" / "me.db") as memory:  # as a process left it that was killed
        await memory.facts.add("I live in Lyon")
        await memory.facts.add("I like tea")
        entry, _ = await memory.journal.receive(channel="line", chat="me/me", message="1", content="/undo")
        await memory.journal.begin(entry)
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        answer = await me.answer("1")
        assert "/undo" in answer.everything and "/facts" in answer.everything
        assert (await me.ask("2", "/facts")).everything.count("`f") == 2


async def test_our_own_words_are_in_the_configured_language_whatever_is_spoken(server, tmp_path):
    environment = settings_for(server, language="es", serve__message_characters=1000)
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        assert "demasiado largo" in (await me.ask("1", "z" * 1100)).everything  # also before there is a talk
        assert "Guardado" in (await me.ask("2", "I live in Lyon with my wife and the cat. #2#")).said[0][1]
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        assert "¿Quizás /facts?" in (await me.ask("3", "/fatcs")).everything  # the session was spoken in English


async def test_what_a_command_says_comes_without_marks_for_a_terminal(server, tmp_path):
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        await me.ask("1", "/remember I like *stars* and [brackets]")
        assert "I like *stars* and [brackets]" in (await me.ask("2", "/facts")).everything
        assert "I like *stars* and [brackets]" in "".join(me.pieces)


# -- limits


async def test_too_many_messages_are_refused_with_one_sentence_and_cost_nothing(server, tmp_path):
    environment = settings_for(server, serve__messages_per_minute=3)
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        for number in range(6):
            await me.send(str(number), f"#{number}#")
        answers = [await me.answer(str(number)) for number in range(6)]
        assert all(f"#{number}#" in answers[number].text for number in range(3))
        assert "seconds" in answers[3].everything
        assert answers[4].said == answers[5].said == ()
        async with client(tmp_path, "other").connected() as other:  # one chat's flood is not another's
            assert (await other.ask("1", "#x#")).text
    assert server.calls == 4


async def test_a_flood_of_long_messages_and_of_waiting_ones_is_answered_with_one_sentence(server, tmp_path):
    server.enqueue(says("At last. #0#", delay_seconds=1.0))
    environment = settings_for(
        server, serve__messages_per_minute=8, serve__message_characters=1000, serve__waiting_messages=2
    )
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        for number in range(5):  # the first two wait for the model
            await me.send(str(number), f"#{number}#")
        for number in range(5, 12):  # too long, and then too many as well
            await me.send(str(number), "z" * 1100)
        answers = [await me.answer(str(number)) for number in range(12)]
        assert "60 seconds" in answers[2].everything
        assert all(answer.said == () for answer in answers[3:])
    assert server.calls == 2


async def test_a_redelivered_message_counts_once_for_the_limits(server, tmp_path):
    async with (
        serving(tmp_path, settings_for(server, serve__messages_per_minute=2)),
        client(tmp_path).connected() as me,
    ):
        first = await me.ask("1", "#1#")
        for _ in range(5):
            await me.send("1", "#1#")
        assert "#2#" in (await me.ask("2", "#2#")).text
        assert "seconds" in (await me.ask("3", "#3#")).everything
        assert me.answers["1"] == first


async def test_a_message_that_is_too_long_is_refused_in_words_and_not_kept(server, tmp_path):
    environment = settings_for(server, serve__message_characters=1000)
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        answer = await me.ask("1", "zebraquartz " * 100)
        assert "1000" in answer.everything and "1200" in answer.everything
        assert b"zebraquartz" not in stored(tmp_path)
    assert server.calls == 0


async def test_a_line_that_is_none_of_the_channel_is_refused_and_the_daemon_goes_on(server, tmp_path):
    environment = settings_for(server, serve__message_characters=1000)
    async with serving(tmp_path, environment):
        for line in (b"hello\n", b"[1]\n", b'{"type": "message", "owner": "../x"}\n', b"x" * 500_000):
            reader, writer = await asyncio.open_unix_connection(socket_file(tmp_path, "line"))
            writer.write(line)
            assert json.loads(await reader.readline())["type"] == "error"
            writer.close()
        async with client(tmp_path).connected() as me:
            assert "#1#" in (await me.ask("1", "#1#")).text
    assert [path.name for path in (tmp_path / "people").glob("*.db")] == ["me.db"]


@pytest.mark.parametrize("line", [{"type": "message", "text": "#1#"}, {"type": "ack", "id": ""}])
async def test_a_message_without_an_id_is_refused_with_what_is_missing(server, tmp_path, line):
    async with serving(tmp_path, settings_for(server)):
        reader, writer = await asyncio.open_unix_connection(socket_file(tmp_path, "line"))
        writer.write(json.dumps(line).encode() + b"\n")
        answer = json.loads(await reader.readline())
        assert answer["type"] == "error" and "id" in answer["text"]
        assert await reader.readline() == b""
        writer.close()
    assert server.calls == 0


async def test_memories_held_open_are_bounded_when_many_people_are_served(server, tmp_path):
    environment = settings_for(server, serve__open_people=2, serve__turns_at_once=2)
    people = [f"person{number}" for number in range(6)]
    async with serving(tmp_path, environment) as daemon:
        for _ in range(2):
            clients = [client(tmp_path, owner=owner) for owner in people]
            await asyncio.gather(*(_say_hello(each) for each in clients))
        assert len(daemon.status()["channels"]) == 1
        assert daemon.status()["people_open"] <= 2
        assert open_databases(tmp_path) <= 4  # two connections each
    assert server.calls == 12


def open_databases(folder: Path) -> int:
    files = [file.resolve() for file in Path("/proc/self/fd").iterdir()]
    return sum(file.suffix == ".db" and folder in file.parents for file in files)


async def _say_hello(each: LineClient) -> None:
    async with each.connected():
        number = str(os.urandom(8).hex())
        assert f"#{number}#" in (await each.ask(number, f"hello #{number}#")).text


# -- private


async def test_nothing_of_a_private_stretch_is_kept_and_a_restart_does_not_end_it(server, tmp_path):
    server.enqueue(says("Zebraquartz, I see."))
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        await me.send("1", "/private")
        answer = await me.ask("2", "I live in Zebraquartz.")
        assert answer.text == "Zebraquartz, I see."
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        await me.ask("3", "still Zebraquartz #3#")
        await me.ask("4", "/private")
        assert "f1" in (await me.ask("5", "I live in Rome. #5#")).everything
    assert b"ebraquartz" not in stored(tmp_path)


async def test_a_private_message_a_crash_cut_off_is_asked_for_again(server, tmp_path):
    server.enqueue(says("never heard", delay_seconds=30))
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        await me.ask("1", "/private")
        await me.send("2", "I live in Zebraquartz.")
        await me.until(taken=2)
        await asyncio.to_thread(server.asked.wait, 20)
    async with serving(tmp_path, settings_for(server)), client(tmp_path).connected() as me:
        assert "again" in (await me.answer("2")).everything
    assert b"ebraquartz" not in stored(tmp_path)


# -- one daemon, whose parts live and end together


async def test_there_is_one_daemon_per_folder_and_the_command_line_works_beside_it(server, tmp_path):
    environment = settings_for(server)
    async with serving(tmp_path, environment), client(tmp_path).connected() as me:
        with pytest.raises(AlreadyServing, match="process"):
            async with serving(tmp_path, environment):
                pass
        await me.ask("1", "I live in Lyon. #1#")
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        assert modes["line.sock"] == modes["control.sock"] == 0o600 and modes["people"] == 0o700
        code, output, _ = await asyncio.to_thread(run, tmp_path, environment, "facts", "add", "I like tea")
        assert code == 0 and "f2" in output
        assert "I like tea" in (await me.ask("2", "/facts")).everything
        code, output, _ = await asyncio.to_thread(run, tmp_path, environment, "status", "--json")
        status = json.loads(output)
        assert code == 0 and status["running"] and status["answered"] == 2 and all(status["parts"].values())
    code, output, errors = await asyncio.to_thread(run, tmp_path, environment, "status")
    assert code == 1 and "olvido serve" in errors


class Dying:
    """A channel that ends by itself, or fails."""

    name = "dying"

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure

    async def run(self, _: Mailbox) -> None:
        await asyncio.sleep(0)
        if self.failure:
            raise self.failure


@pytest.mark.parametrize(("failure", "kind"), [(None, PartEnded), (OSError("gone"), OSError)])
async def test_a_part_that_ends_or_fails_ends_the_whole(server, tmp_path, failure, kind):
    loaded = load_settings(None, {**settings_for(server), "OLVIDO_DATA_DIR": str(tmp_path)}, tmp_path)
    with pytest.raises(ExceptionGroup) as raised:
        async with (
            ChatModel.open(loaded.settings) as model,
            People.open(loaded, model, system_clock) as people,
            asyncio.TaskGroup() as tasks,
        ):
            daemon = Daemon(loaded.settings, model, people, tasks, system_clock, lambda: True)
            daemon.channels["dying"] = Dying(failure)
            daemon.start()
    assert raised.group_contains(kind)


def test_a_process_whose_part_fails_says_so_and_ends_with_an_error(server, tmp_path):
    (tmp_path / "line.sock").mkdir()  # so that nobody can listen there
    key = "sk-verysecretkey1234567890"
    code, _, errors = run(tmp_path, settings_for(server, model__api_key=key), "serve")
    assert code == 1
    assert "a part of it failed" in errors and "logs" in errors
    logs = "".join(file.read_text() for file in (tmp_path / "logs").iterdir())
    assert "part_failed" in logs
    assert key not in errors + logs


class Breaking:
    """A channel that breaks its promise not to raise while a reply is being made."""

    name = "breaking"

    def __init__(self) -> None:
        self.sent: asyncio.Queue[list[str]] = asyncio.Queue()

    async def run(self, _: Mailbox) -> None:
        await asyncio.get_running_loop().create_future()

    async def stream(self, _message, _said) -> None:
        raise RuntimeError("a bug")

    async def send(self, _message, reply) -> None:
        self.sent.put_nowait([part.text for part in reply])


async def test_a_message_that_breaks_something_is_answered_so_and_not_tried_for_ever(server, tmp_path):
    from assistant.channels import Inbound

    async with serving(tmp_path, settings_for(server)) as daemon:
        channel = daemon.channels["breaking"] = Breaking()
        await daemon.inbox.take("breaking", Inbound(owner="me", chat="x", message="1", text="#1#"))
        reply = await channel.sent.get()
        assert "log" in reply[-1]
        assert daemon.inbox.answered <= 1


async def test_a_refused_message_is_answered_in_the_same_transaction_that_writes_it_down(tmp_path):
    async with Memory.open(tmp_path / "ana.db") as memory:
        entry, new = await memory.journal.receive(channel="line", chat="1", message="7", content="", refusal="[]")
        assert new and entry.answered
        waiting = await memory.journal.next("line", "1")
        assert waiting is not None and waiting.answered  # only to be sent: nobody takes it for an empty message


# -- what somebody deletes under a daemon


async def test_a_memory_deleted_under_the_daemon_is_not_written_into_and_everybody_is_told(server, tmp_path):
    file = tmp_path / "people" / "me.db"
    async with (
        serving(tmp_path, settings_for(server)) as daemon,
        client(tmp_path).connected() as me,
        client(tmp_path, owner="ana").connected() as ana,
    ):
        await me.ask("1", "I live in Lyon. #1#")
        aside = file.rename(tmp_path / "aside.db")
        await me.send("2", "I like tea. #2#")
        await me.until(refused=1)
        assert "deleted" in me.refused["2"] and "restore" in me.refused["2"]
        [problem] = daemon.status()["problems"]
        code, shown, _ = await asyncio.to_thread(run, tmp_path, settings_for(server), "status")
        assert code == 0 and f"at {problem['at']}: {file} was deleted" in shown
        assert "#1#" in (await ana.ask("1", "#1#")).text  # one lost file is not everybody's
        assert not file.exists()
        aside.rename(file)
        assert "#2#" in (await me.ask("2", "I like tea. #2#")).text


async def test_a_data_folder_deleted_under_the_daemon_stops_it_loudly(server, tmp_path):
    folder = tmp_path / "data"
    environment = settings_for(server, serve__folder_check_seconds=0.1)
    process = start_olvido("--data-dir", folder, "serve", environment=environment)
    try:
        async with client(folder).connected() as me:
            await me.ask("1", "#1#")
            folder.rename(tmp_path / "elsewhere")
            (folder / "people").mkdir(parents=True)  # made anew by somebody else, who listens there
            (folder / "line.sock").touch()
            _, errors = await asyncio.to_thread(process.communicate, timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1
    assert f"Olvido stopped: {folder} was deleted, moved or replaced" in errors
    assert (folder / "line.sock").exists() and not list((folder / "people").iterdir())


async def test_the_end_of_a_daemon_leaves_the_sockets_of_another_one(tmp_path):
    async def nobody(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        pass

    file = tmp_path / "line.sock"
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        await first.enter_async_context(listening(file, nobody))
        await second.enter_async_context(listening(file, nobody))  # as in a folder that was made anew
        await first.aclose()
        assert file.is_socket()
        await second.aclose()
        assert not file.exists()
