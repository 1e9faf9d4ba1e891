"""One message, top to bottom, against a real model server: what is said, stored and sent."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path

import pysqlite3
import pytest

from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.talk import Talk, open_talk
from assistant.testing import OpenAIServer, fails, say, says, start_olvido, stored, words
from memory import Memory
from memory.testing import start_python

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


def environment(server: OpenAIServer) -> dict[str, str]:
    return {
        "OLVIDO_MODEL__PROVIDER": "custom",
        "OLVIDO_MODEL__BASE_URL": server.base_url,
        "OLVIDO_MODEL__NAME": "first",
        "OLVIDO_MODEL__BACKOFF_SECONDS": "0.01",
        "OLVIDO_MODEL__BACKOFF_MAX_SECONDS": "0.05",
    }


Talking = Callable[[Path], AbstractAsyncContextManager[Talk]]


@pytest.fixture
def talking(server, tmp_path):
    @asynccontextmanager
    async def opened(folder: Path = tmp_path) -> AsyncIterator[Talk]:
        settings = load_settings(None, environment(server), folder).settings
        async with Memory.open(folder / "me.db") as memory, ChatModel.open(settings) as model:
            yield await open_talk(memory, model, "repl", "me")

    return opened


async def test_a_reply_streams_and_both_sides_are_stored(server, talking):
    server.enqueue(says("Hello Ana."))
    async with talking() as talk:
        answer = await say(talk, "hi there")
        assert words(answer) == "Hello Ana."
        window = await talk.memory._conversation.window(talk.session.id)
        assert [(turn.role, turn.content) for turn in window] == [("user", "hi there"), ("assistant", "Hello Ana.")]


async def test_a_saved_fact_is_announced_with_its_id_and_how_to_undo_it(server, talking):
    server.enqueue(says("Nice."), says("Noted."))
    async with talking() as talk:
        saved = words(await say(talk, "I live in Lyon."), "notice")
        assert "f1" in saved and "Lyon" in saved and "/undo f1" in saved
        moved = words(await say(talk, "I moved to Rome."), "notice")
        assert "f2" in moved and "Lyon" in moved
        await say(talk, "/undo f2")
        assert [fact.fact for fact in await talk.memory.facts.list()] == ["I live in Lyon"]


async def test_what_the_user_said_survives_a_model_that_fails_and_retry_asks_again(server, talking):
    server.enqueue(fails(401, "bad key"), says("Now it works."))
    async with talking() as talk:
        answer = await say(talk, "I live in Lyon.")
        assert words(answer, "error").endswith(".")
        assert [fact.fact for fact in await talk.memory.facts.list()] == ["I live in Lyon"]
        assert words(await say(talk, "/retry")) == "Now it works."
        window = await talk.memory._conversation.window(talk.session.id)
        assert [turn.role for turn in window] == ["user", "assistant"]


async def test_a_command_never_reaches_the_model(server, talking):
    async with talking() as talk:
        for command in ("/help", "/facts", "/context", "/why", "/stats", "/recall rain", "/export", "/nonsense"):
            assert words(await say(talk, command), "command"), command
        assert server.calls == 0


async def test_a_path_is_no_command(server, talking):
    server.enqueue(says("A file."))
    async with talking() as talk:
        assert words(await say(talk, "/etc/hosts is what?")) == "A file."


async def test_nothing_of_a_private_stretch_is_kept_anywhere(server, talking, tmp_path):
    server.enqueue(says("Your zebraquartz is safe."), says("Hello again."))
    async with talking() as talk:
        await say(talk, "/private")
        await say(talk, "I live in Zebraquartz.")
        await say(talk, "/private")
        await say(talk, "good morning")
        assert await talk.memory.facts.list(None) == []
        assert "ebraquartz" not in str(server.history[-1].body)
    assert b"ebraquartz" not in stored(tmp_path)


async def test_forgetting_asks_first_and_then_leaves_nothing(server, talking):
    server.enqueue(says("Nice."))
    async with talking() as talk:
        await say(talk, "I live in Zebraquartz.")
        assert "Zebraquartz" in words(await say(talk, "/forget f1"), "command")
        assert await talk.memory.facts.list()
        await say(talk, "/forget f1")
        assert await talk.memory.facts.list(None) == []


async def test_why_shows_the_fact_its_quote_and_what_it_replaced(server, talking):
    server.enqueue(says("ok"), says("ok"), says("In Rome."))
    async with talking() as talk:
        await say(talk, "I live in Lyon.")
        await say(talk, "I moved to Rome.")
        await say(talk, "/new")
        await say(talk, "Is it far to the sea from Rome, where I moved?")
        why = words(await say(talk, "/why"), "command")
        assert "I moved to Rome" in why and "I live in Lyon." in why


async def test_the_answers_of_commands_are_in_the_language_of_the_talk(server, talking):
    server.enqueue(says("Qué bien."))
    async with talking() as talk:
        await say(talk, "Vivo en Madrid y me encanta la ciudad.")
        assert "olvid" in words(await say(talk, "/help"), "command").lower()


async def test_an_empty_reply_is_a_sentence_and_the_turn_stays(server, talking):
    server.enqueue(says(""), says(""))
    async with talking() as talk:
        answer = await say(talk, "hello")
        assert words(answer, "error")
        assert len(await talk.memory._conversation.window(talk.session.id)) == 1


async def test_a_command_killed_once_the_model_was_asked_leaves_the_users_words_there_once(server, tmp_path):
    server.enqueue(says("slow reply", delay_seconds=30.0))
    process = start_olvido("--data-dir", tmp_path, "ask", "I live in Lyon.", environment=environment(server))
    assert await asyncio.to_thread(server.asked.wait, 60)
    process.kill()
    process.communicate()
    async with Memory.open(tmp_path / "people" / "me.db") as memory:
        assert [fact.fact for fact in await memory.facts.list()] == ["I live in Lyon"]


STAGES = ("receive", "saved", "assemble", "piece", "ask", "keep", "end", "pending")
_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from assistant.model import ChatModel
from assistant.settings import load_settings
from assistant.talk import open_talk
from assistant.turn import take_turn
from memory import Memory

def kill(reached):
    if reached == stage:
        os.kill(os.getpid(), signal.SIGKILL)

class Stages(dict):  # each stage is written here when it ends
    def __setitem__(self, name, seconds):
        kill(name)

async def main(folder):
    settings = load_settings(None, os.environ, folder).settings
    async with Memory.open(folder / "me.db") as memory, ChatModel.open(settings) as model:
        talk = await open_talk(memory, model, "repl", "me")
        talk.stages = Stages()
        async for said in take_turn(talk, "I live in Lyon."):
            kill("saved" if said.saved else said.kind)
        kill("end")
        await memory.run_pending()
        kill("pending")

stage = ""
asyncio.run(main(Path(sys.argv[1]) / "whole"))  # loads what a process loads once, before it forks
for stage in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        asyncio.run(main(Path(sys.argv[1]) / stage))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


async def test_killed_at_any_stage_of_a_turn_the_users_words_are_there_once(server, talking, tmp_path):
    """DESIGN section 2: stored durably before anything else can fail; a restart neither loses nor doubles them."""
    killed = start_python(_KILLED, tmp_path, *STAGES, **environment(server), OLVIDO_MODEL__SUMMARIES="extracted")
    ended, errors = await asyncio.to_thread(killed.communicate, timeout=120)
    assert [int(code) for code in ended.split()] == [-signal.SIGKILL] * len(STAGES), errors
    for stage in STAGES:
        await words_are_there_once(tmp_path / stage, talking, stage)


async def words_are_there_once(folder: Path, talking: Talking, stage: str) -> None:
    with closing(pysqlite3.connect(folder / "me.db")) as connection:
        stored = [content for (content,) in connection.execute("SELECT content FROM turns ORDER BY id")]
    replied = ["All right."] if stage in ("keep", "end", "pending") else []
    assert stored == ["I live in Lyon.", *replied], stage
    async with talking(folder) as talk:
        assert [fact.fact for fact in await talk.memory.facts.list(None)] == ["I live in Lyon"]
        assert words(await say(talk, "Good morning!")) == "All right."  # and the talk goes on
        await talk.memory.run_pending()  # the closed session is compressed, once
        assert [fact.fact for fact in await talk.memory.facts.list(None)] == ["I live in Lyon"]
        found = [
            hit.text for hit in await talk.memory.recall("Lyon") if hit.kind != "fact" and "live in Lyon" in hit.text
        ]
        assert len(found) == 1


def test_a_conversation_through_a_pipe(server, tmp_path):
    server.enqueue(says("Hello."), says("Rome is far."))
    done = subprocess.run(
        [sys.executable, "-c", "from assistant.cli import main; main()", "--data-dir", str(tmp_path), "chat"],
        input="hello\nI live in Rome.\n/facts\n/quit\n",
        env={**os.environ, **environment(server), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Hello." in done.stdout and "Rome is far." in done.stdout
    assert "`f1` I live in Rome" in done.stdout
