"""F11, byte by byte: after ``olvido facts forget`` the words are in no file under the data folder."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.cli import app
from memory import Memory, migrate
from memory.database import Database
from memory.portable import read
from memory.stores import facts as rows
from memory.testing import start_python

TEXT = "My neighbour Quillonbury repairs theremins"
EARLIER = "My neighbour Vraskelund repairs theremins"
WORDS = ("quillonbury", "vraskelund", "theremin")
DATA = Path("data")
FILE = DATA / "people" / "me.db"
BACKUPS = DATA / "people" / "backups"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    for name in [*os.environ]:
        if name.startswith(("OLVIDO_", "OPENAI_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def run(*arguments: str):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done


def holding(folder: Path = DATA) -> list[str]:
    """The files below a folder in which one of the words stands, in any case, in UTF-8 or UTF-16."""
    found = []
    for file in sorted(folder.rglob("*")):
        content = file.read_bytes().lower() if file.is_file() else b""
        forms = [word.encode(form) for word in WORDS for form in ("utf-8", "utf-16-le", "utf-16-be")]
        if any(form in content for form in forms):
            found.append(file.name)
    return found


async def converse() -> None:
    """The words said in a conversation, learnt, corrected, undone and learnt again, asked about and searched for."""
    async with Memory.open(FILE) as memory:
        await memory.facts.add(TEXT)
        await memory.facts.undo()
        session = await memory.open_session()
        await memory.add_turn(session.id, role="user", content=f"Remember that {EARLIER}. And I like tea.")
        await memory.add_turn(session.id, role="assistant", content="Saved.")
        await memory.add_turn(session.id, role="user", content="Who is my neighbour?")
        await memory.facts.add("I live in Lyon")
        [known] = [fact for fact in await memory.facts.list() if "Vraskelund" in fact.fact]
        await memory.facts.edit(known.id, TEXT)
        await memory.similarity("theremins", TEXT)


def fact_ids() -> list[str]:
    async def ask() -> list[str]:
        async with Memory.open(FILE) as memory:
            return [fact.id for fact in await memory.facts.list(None) if "theremin" in fact.fact]

    return asyncio.run(ask())


@pytest.fixture
def remembered() -> str:
    asyncio.run(converse())
    [fact_id] = fact_ids()
    return fact_id


def log(name: str, *lines: str) -> Path:
    folder = DATA / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder / name


async def reopen_and_work() -> None:
    async with Memory.open(FILE) as memory:
        await memory.run_pending()
        await memory.facts.choose("Who is my neighbour?")


def test_no_byte_is_left_and_nothing_brings_it_back(remembered):
    lines = ('{"event": "started"}', f'{{"event": "learned", "fact": "{TEXT}"}}', f'{{"detail": "{EARLIER.upper()}"}}')
    file = log("olvido-2026-01-01T10.jsonl", *lines)
    run("facts", "export", "before.json")
    run("facts", "export", "before.md")
    run("facts", "edit", remembered, "--domain", "work")
    assert "me.db" in holding()
    assert run("facts", "forget", remembered, "-y").stderr == ""
    assert holding() == []
    assert file.read_text() == '{"event": "started"}\n'
    for export in ("before.json", "before.md"):
        assert "1 forgotten earlier" in run("facts", "import", export).stdout
    asyncio.run(reopen_and_work())
    assert holding() == []
    assert fact_ids() == []
    assert "I live in Lyon" in run("facts", "list").stdout


def test_what_another_fact_of_the_same_sentence_quoted_goes_too():
    async def talk() -> None:
        async with Memory.open(FILE) as memory:
            session = await memory.open_session()
            await memory.add_turn(session.id, role="user", content="I live in Quillonbury and I work at a bakery.")

    asyncio.run(talk())
    run("facts", "forget", "f1", "-y")
    assert holding() == []
    assert "bakery" in run("facts", "list").stdout


def test_what_compression_made_of_it_goes_too_and_is_shown_before():
    async def talk() -> None:
        async with Memory.open(FILE) as memory:
            session = await memory.open_session()
            await memory.add_turn(session.id, role="user", content="I live in Quillonbury.")
            for number in range(14):
                role = "assistant" if number % 2 == 0 else "user"
                await memory.add_turn(session.id, role=role, content=f"Number {number} of the tools hangs in the shed.")
            await memory.run_pending()

    asyncio.run(talk())
    assert "Removed from what is kept of conversations: " in run("facts", "forget", "f1", "-y").stdout
    assert holding() == []
    asyncio.run(reopen_and_work())
    assert holding() == []


def test_files_of_the_user_that_hold_it_are_named_and_those_of_other_people_are_not(remembered):
    run("--owner", "ana", "facts", "add", TEXT)
    run("facts", "export", "data/mine.json")
    shown = run("facts", "forget", remembered, "-y")
    assert "yours to delete:" in shown.stderr
    assert "mine.json" in shown.stderr
    assert "ana" not in shown.stderr
    assert holding() == ["mine.json", "ana.db"]


def test_while_another_process_has_the_file_open_no_byte_is_left(remembered):
    script = (
        "import asyncio, sys\nfrom memory import Memory\n"
        "async def main():\n    async with Memory.open(sys.argv[1]) as memory:\n"
        "        await memory.facts.list(None)\n        print('ready', flush=True)\n"
        "        await asyncio.to_thread(sys.stdin.readline)\n"
        "asyncio.run(main())"
    )
    with start_python(script, FILE.absolute()) as other:
        assert other.stdout.readline() == "ready\n"
        run("facts", "forget", remembered, "-y")
        assert holding() == []
        other.communicate("\n", timeout=30)
    assert holding() == []


# Older copies


@pytest.fixture
def copies(remembered) -> list[str]:  # noqa: ARG001 (they are copies of what is remembered)
    """A copy as upgrades make it, a plain one somebody made, and one of another person who knows the same."""

    async def make() -> None:
        async with Memory.open(FILE) as memory:
            await memory.database.backup(BACKUPS / "me-v2-20260101T000000Z.db")
            await memory.database.backup(BACKUPS / "me.db.old")
            await memory.database.backup(BACKUPS / "ana-v2-20260101T000000Z.db")
        async with Memory.open(FILE.with_name("ana.db")) as memory:
            await memory.facts.add("I like tea")

    asyncio.run(make())
    return ["me-v2-20260101T000000Z.db", "me.db.old"]


def test_older_copies_that_still_hold_it_are_named_and_left_alone(remembered, copies):
    before = {name: (BACKUPS / name).read_bytes() for name in copies}
    shown = run("facts", "forget", remembered, "-y")
    assert "Older copies still hold it:" in shown.stdout
    assert "--including-backups" in shown.stdout
    for name in copies:
        assert f"{BACKUPS / name}" in shown.stdout
        assert (BACKUPS / name).read_bytes() == before[name]
    assert holding() == sorted([*copies, "ana-v2-20260101T000000Z.db"])


def test_including_backups_cleans_every_copy_of_this_person_and_makes_no_new_one(remembered, copies):
    others = (BACKUPS / "ana-v2-20260101T000000Z.db").read_bytes()
    shown = run("facts", "forget", remembered, "-y", "--including-backups")
    assert "Cleaning copy 2 of 2: me.db.old" in shown.stderr
    assert holding() == ["ana-v2-20260101T000000Z.db"]
    assert (BACKUPS / "ana-v2-20260101T000000Z.db").read_bytes() == others
    assert sorted(file.name for file in BACKUPS.iterdir()) == sorted([*copies, "ana-v2-20260101T000000Z.db"])
    for name in copies:  # what else is in it is still there, and it can be put in place of the file
        shutil.copy(BACKUPS / name, FILE)
        assert "I live in Lyon" in run("facts", "list").stdout
        assert fact_ids() == []


def test_a_copy_of_an_older_schema_is_cleaned_without_a_copy_of_the_copy(remembered, tmp_path):
    old = tmp_path / "migrations"
    old.mkdir()
    for migration in migrate.load()[:2]:
        (old / migration.file_name).write_text(migration.sql, encoding="utf-8")
    path = BACKUPS / "me-v2-20260101T000000Z.db"
    run("facts", "export", "before.json")
    [written] = [item for item in read(Path("before.json").read_text(), "json") if "theremin" in item.text]

    async def make() -> None:
        async with Database.open(path, migrations=old) as database, database.transaction() as tx:
            await rows.insert(tx, written.fact)

    asyncio.run(make())
    assert path.name in holding()
    run("facts", "forget", remembered, "-y", "--including-backups")
    assert holding() == []
    assert [file.name for file in BACKUPS.rglob("*")] == [path.name]


def test_a_copy_that_cannot_be_cleaned_is_told_and_the_others_are(remembered, copies):
    (BACKUPS / "me-broken.db").write_bytes(b"SQLite format 3\0" + TEXT.encode() * 100)
    done = CliRunner().invoke(app, ["facts", "forget", remembered, "-y", "--including-backups"])
    assert done.exit_code == 1
    assert "me-broken.db could not be cleaned; delete it" in done.stderr
    assert "Traceback" not in done.output
    assert holding() == sorted(["me-broken.db", "ana-v2-20260101T000000Z.db"], key=lambda name: str(BACKUPS / name))
    assert copies
