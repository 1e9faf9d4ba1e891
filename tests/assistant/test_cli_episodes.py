"""``olvido episodes`` as a user meets it, on real files."""

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.cli import app
from memory import Memory
from memory.testing import FakeClock

FILE = Path("data/people/me.db")
LEAK = (
    "The dishwasher leaks water on the kitchen floor, how do I fix it?",
    "Check the door gasket first.",
    "The gasket of the dishwasher was torn. That worked, thanks!",
)
TRIP = (
    "I want to plan a trip to Lisbon with Marta. I live in Quillonbury.",
    "Lovely. The trip to Lisbon takes four days.",
    "We decided to take the night train to Lisbon.",
)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    for name in [*os.environ]:
        if name.startswith(("OLVIDO_", "OPENAI_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def live(*sittings: tuple[str, ...], days_ago: float = 1) -> None:
    """Conversations some days ago."""

    async def talk() -> None:
        clock = FakeClock(datetime.now(UTC) - timedelta(days=days_ago))
        async with Memory.open(FILE, clock=clock) as memory:
            for said in sittings:
                session = await memory.open_session()
                for number, text in enumerate(said):
                    clock.advance(minutes=1)
                    await memory.add_turn(session.id, "assistant" if number % 2 else "user", text)
            await memory.open_session()
            await memory.run_pending()

    asyncio.run(talk())


def run(*arguments: str, given: str | None = None):
    return CliRunner().invoke(app, ("episodes", *arguments), input=given)


def out(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def data(*arguments: str):
    return json.loads(out(*arguments, "--json"))


def refused(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 1, done.output
    assert "Traceback" not in done.output
    return done.stderr.strip()


def test_nothing_yet_creates_nothing():
    done = run("list")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no episodes yet" in done.stderr
    assert data("list") == []
    assert not FILE.exists()


def test_list_and_show():
    live(LEAK, TRIP)
    lines = out("list").splitlines()
    assert lines[0].split("\t") == ["id", "when", "topic", "outcome", "type", "domain", "phase"]
    assert [line.split("\t")[0] for line in lines[1:]] == ["e2", "e1"]
    first = data("list")[1]
    assert (first["id"], first["outcome"], first["task_type"], first["phase"]) == ("e1", "success", "fix", "active")
    shown = out("show", "e2")
    assert "night train to Lisbon" in shown
    assert "Check the door gasket" not in shown
    assert data("show", "e2")["accesses"] == 2, "looking at it counts"
    assert data("list", "--phase", "archived") == []


def test_show_with_the_trace():
    live(LEAK)
    shown = out("show", "e1", "--trace")
    assert "assistant: Check the door gasket first." in shown
    assert [one["content"] for one in data("show", "e1", "--trace")["trace"]] == list(LEAK)


def test_a_trace_that_is_gone_says_so():
    live(LEAK, days_ago=40)
    asyncio.run(_pending())
    done = run("show", "e1", "--trace")
    assert done.exit_code == 0
    assert "not kept any more" in done.stderr


async def _pending() -> None:
    async with Memory.open(FILE) as memory:
        await memory.run_pending()


def test_search_in_each_way():
    live(LEAK, TRIP)
    assert out("search", "dishwasher leaking").splitlines()[1].startswith("e1\t")
    [hit, *_] = data("search", "dishwasher leaking")
    assert hit["way"] == "semantic"
    assert hit["score"] == pytest.approx(sum(hit["parts"].values()), abs=1e-4)
    assert [one["id"] for one in data("search", "--type", "fix", "--outcome", "success")] == ["e1"]
    assert [one["way"] for one in data("search", "train", "--entity", "Lisbon")] == ["hybrid"]
    day = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    assert [one["way"] for one in data("search", "--since", day)] == ["temporal", "temporal"]
    assert run("search", "--until", day).stderr.startswith("Nothing was found.")
    assert data("search", "leak", "--failures") == []
    assert "There is no outcome “good”" in refused("search", "--outcome", "good")
    assert "is no day" in refused("search", "--since", "tomorrow")


def test_errors_say_what_to_do():
    live(LEAK)
    assert "olvido episodes list" in refused("show", "e99")
    assert "There is no episode f1" in refused("show", "f1")
    assert "There is no phase" in refused("list", "--phase", "young")
    assert "nothing to take apart" in refused("split", "e1")
    assert "is not deleted" in refused("restore", "e1")
    assert "Add -y" in refused("forget", "e1")


def test_delete_and_restore():
    live(LEAK)
    assert "olvido episodes restore e1" in out("delete", "e1")
    assert data("list") == []
    assert [one["id"] for one in data("list", "--phase", "deleted")] == ["e1"]
    assert "dishwasher" in out("restore", "e1")
    assert [one["id"] for one in data("search", "dishwasher")] == ["e1"]


def test_f11_forget_leaves_no_byte_but_the_facts():
    live(LEAK, TRIP)
    preview = run("forget", "e2")
    assert "The facts learnt in it stay" in preview.stdout
    assert "3 messages" in preview.stdout
    typed = Path("data/repl_history")
    typed.write_text(f"# then\n+{TRIP[0]}\n+{LEAK[0]}\n", "utf-8")
    gone = json.loads(out("forget", "e2", "-y", "--json"))
    assert "Marta" not in typed.read_text("utf-8")
    assert LEAK[0] in typed.read_text("utf-8")
    assert gone["forgotten"] == ["e2"]
    assert gone["complete"]
    content = b"".join(file.read_bytes() for file in FILE.parent.glob("me.db*")).lower()
    assert b"quillonbury" in content, "the fact"
    assert b"marta" not in content


def test_f11_forget_takes_the_facts_along_when_told():
    live(LEAK, TRIP)
    backup = Path("data/people/backups/me-v1-20260101T000000Z.db")
    backup.parent.mkdir()
    backup.write_bytes(FILE.read_bytes())
    done = run("forget", "e2", "-y", "--with-facts")
    assert done.stdout.endswith("Forgotten: e2.\n")
    assert backup.name in done.stderr, "older copies are named"
    content = b"".join(file.read_bytes() for file in FILE.parent.glob("me.db*")).lower()
    assert not any(word in content for word in (b"quillonbury", b"lisbon"))
    assert b"dishwasher" in content
