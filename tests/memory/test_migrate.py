"""Migrations: their files, a fresh and an upgraded schema, the copy made before an upgrade, and what goes wrong."""

import asyncio
import shutil
import signal
import time
from pathlib import Path

import pysqlite3
import pytest

from memory import migrate
from memory.database import Database
from memory.errors import DatabaseError, DatabaseNewer
from memory.testing import FakeClock, start_python

SHIPPED = migrate.load()
NEXT = len(SHIPPED) + 1
ADD = "INSERT INTO settings (key, value) VALUES (?, ?)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people" / "ana.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of migrations of our own, to begin with the shipped ones."""
    target = tmp_path / "migrations"
    target.mkdir()
    for migration in SHIPPED:
        (target / migration.file_name).write_text(migration.sql, encoding="utf-8")
    return target


def add_migration(folder: Path, sql: str, number: int = NEXT, name: str = "more") -> None:
    (folder / f"{number:04}_{name}.sql").write_text(sql, encoding="utf-8")


def content(file: Path) -> bytes:
    return file.read_bytes()


def backups(path: Path) -> list[Path]:
    return sorted((path.parent / "backups").glob("*"))


def look(path: Path, sql: str) -> list[tuple[object, ...]]:
    """Read a file without any of our code."""
    connection = pysqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def schema(db: Database) -> list[tuple[object, ...]]:
    rows = await db.fetch_all("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
    return [tuple(row) for row in rows]


async def make_old(path: Path, folder: Path) -> None:
    async with Database.open(path, migrations=folder) as db, db.transaction() as tx:
        await tx.execute(ADD, ("a", "kept"))


# --- files


def test_the_shipped_migrations_are_numbered_without_a_gap() -> None:
    assert [migration.number for migration in SHIPPED] == list(range(1, NEXT))
    assert SHIPPED[0].file_name == "0001_base.sql"


@pytest.mark.parametrize("name", ["0009_late.sql", "2_short.sql", "0002_Upper.sql"])
def test_a_migration_out_of_order_or_badly_named_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "0001_base.sql").write_text("SELECT 1;")
    (tmp_path / name).write_text("SELECT 1;")
    with pytest.raises(ValueError, match=r"number|named"):
        migrate.load(tmp_path)


def test_a_folder_without_migrations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="numbered"):
        migrate.load(tmp_path)


def test_statements_are_split_where_sqlite_says() -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM b; DELETE FROM c;\nEND;"
    sql = f"-- a comment; with a semicolon\nINSERT INTO a VALUES ('x;y'); SELECT 1;\n{trigger}\n-- the end; really\n"
    first, second, third = migrate.statements(sql)
    assert first.endswith("INSERT INTO a VALUES ('x;y');")
    assert (second, third) == ("SELECT 1;", trigger)


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "SELECT 1; SELECT 'open;"])
def test_a_script_that_ends_inside_a_statement_is_refused(sql: str) -> None:
    with pytest.raises(ValueError, match="ends inside"):
        list(migrate.statements(sql))


# --- fresh and upgraded


async def test_a_new_file_is_marked_as_ours_recorded_and_not_copied(path: Path) -> None:
    async with Database.open(path, clock=FakeClock()) as db:
        assert await db.fetch_value("PRAGMA application_id") == int.from_bytes(b"OLVI")
        assert await db.fetch_value("PRAGMA user_version") == len(SHIPPED)
        rows = await db.fetch_all("SELECT number, name, sha256, applied_at FROM migrations ORDER BY number")
    assert [tuple(row) for row in rows] == [(m.number, m.name, m.sha256, "2026-01-01T12:00:00+00:00") for m in SHIPPED]
    assert backups(path) == []


async def test_opening_again_changes_neither_schema_nor_record(path: Path) -> None:
    async with Database.open(path, clock=FakeClock()) as db:
        before = await schema(db), [tuple(row) for row in await db.fetch_all("SELECT * FROM migrations")]
    async with Database.open(path) as db:
        assert before == (await schema(db), [tuple(row) for row in await db.fetch_all("SELECT * FROM migrations")])
    assert backups(path) == []


@pytest.mark.parametrize("old", range(1, NEXT + 1))
async def test_an_upgraded_schema_equals_a_fresh_one_and_data_is_kept(path: Path, folder: Path, old: int) -> None:
    """From every shipped version, and from the newest to one that only this test has."""
    add_migration(
        folder, "CREATE TABLE more (id INTEGER PRIMARY KEY) STRICT; ALTER TABLE settings ADD COLUMN note TEXT;"
    )
    migrations = migrate.load(folder)
    older = folder.parent / "older"
    older.mkdir()
    for migration in migrations[:old]:
        shutil.copy(folder / migration.file_name, older)
    await make_old(path, older)
    async with (
        Database.open(path, migrations=folder) as upgraded,
        Database.open(path.with_name("fresh.db"), migrations=folder) as fresh,
    ):
        assert await schema(upgraded) == await schema(fresh)
        assert await upgraded.fetch_value("SELECT value FROM settings WHERE key = 'a'") == "kept"
        assert await upgraded.fetch_value("PRAGMA user_version") == NEXT
    assert len(backups(path)) == (old < NEXT)


async def test_at_most_one_generation_is_active_and_one_is_building(path: Path) -> None:
    add = "INSERT INTO generations (model, dimension, state, created_at) VALUES ('m', 2, ?, '')"
    async with Database.open(path) as db, db.transaction() as tx:
        for state in ("active", "building"):
            await tx.execute(add, (state,))
            with pytest.raises(pysqlite3.IntegrityError):
                await tx.execute(add, (state,))
        with pytest.raises(pysqlite3.IntegrityError):
            await tx.execute(add, ("lost",))


async def test_a_table_can_be_rebuilt_without_losing_what_refers_to_it(path: Path, folder: Path) -> None:
    add_migration(
        folder,
        "CREATE TABLE parents (id INTEGER PRIMARY KEY) STRICT;"
        "CREATE TABLE children (parent INTEGER REFERENCES parents (id) ON DELETE CASCADE) STRICT;"
        "INSERT INTO parents VALUES (1); INSERT INTO children VALUES (1);",
    )
    await make_old(path, folder)
    rebuild = (
        "CREATE TABLE new (id INTEGER PRIMARY KEY, name TEXT) STRICT; INSERT INTO new (id) SELECT id FROM parents;"
        "DROP TABLE parents; ALTER TABLE new RENAME TO parents;"
    )
    add_migration(folder, rebuild, NEXT + 1, "rebuild")
    async with Database.open(path, migrations=folder) as db:
        assert await db.fetch_value("SELECT count(*) FROM children JOIN parents ON id = parent") == 1
        with pytest.raises(pysqlite3.IntegrityError):
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO children VALUES (2)")


# --- the copy before an upgrade


async def test_before_an_upgrade_a_sound_copy_of_the_old_version_is_made(path: Path, folder: Path) -> None:
    await make_old(path, folder)
    add_migration(folder, "UPDATE settings SET value = 'changed';")
    async with Database.open(path, migrations=folder, clock=FakeClock()) as db:
        assert await db.fetch_value("SELECT value FROM settings") == "changed"
    (copy,) = backups(path)
    assert copy.name == f"ana-v{NEXT - 1}-20260101T120000Z.db"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert look(copy, "PRAGMA integrity_check") == [("ok",)]
    assert look(copy, "PRAGMA user_version") == [(NEXT - 1,)]
    assert look(copy, "SELECT value FROM settings") == [("kept",)]


async def test_an_upgrade_that_cannot_be_copied_first_does_not_happen(path: Path, folder: Path) -> None:
    await make_old(path, folder)
    before = content(path)
    (path.parent / "backups").write_text("a file where the folder should be")
    add_migration(folder, "UPDATE settings SET value = 'changed';")
    with pytest.raises(DatabaseError, match="backups"):
        async with Database.open(path, migrations=folder):
            pass
    assert content(path) == before


UPGRADE = """
import asyncio, sys
from pathlib import Path
from memory.database import Database

async def main(path, folder):
    async with Database.open(path, migrations=Path(folder)) as db:
        assert await db.fetch_value("SELECT count(*) FROM more") == 1

sys.stdin.readline()
asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_that_upgrade_at_once_do_it_once(path: Path, folder: Path) -> None:
    await make_old(path, folder)
    add_migration(folder, "CREATE TABLE more (id INTEGER PRIMARY KEY) STRICT; INSERT INTO more VALUES (1);")
    processes = [start_python(UPGRADE, path, folder) for _ in range(4)]
    results = await asyncio.gather(*(asyncio.to_thread(process.communicate, "go\n") for process in processes))
    assert [error for _, error in results] == [""] * 4
    assert len(backups(path)) == 1


# --- what goes wrong


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE more (id INTEGER); INSERT INTO nowhere VALUES (1);",
        "UPDATE settings SET value = 'changed'; INSERT INTO settings VALUES ('a', 'twice');",
        "CREATE TABLE more (id INTEGER REFERENCES settings (key)); INSERT INTO more VALUES (7);",
    ],
    ids=["a mistake", "a constraint", "a reference to nothing"],
)
async def test_a_migration_that_fails_half_way_leaves_the_old_version(path: Path, folder: Path, sql: str) -> None:
    await make_old(path, folder)
    shipped = folder.parent / "shipped"
    shutil.copytree(folder, shipped)
    add_migration(folder, "CREATE TABLE fine (id INTEGER);", NEXT, "fine")
    add_migration(folder, sql, NEXT + 1, "broken")
    with pytest.raises(DatabaseError, match=rf"{NEXT + 1:04}_broken\.sql: it is still at version {NEXT - 1}"):
        async with Database.open(path, migrations=folder):
            pass
    async with Database.open(path, migrations=shipped) as db:
        assert not db.recovered
        assert await db.fetch_value("PRAGMA user_version") == NEXT - 1
        assert await db.fetch_value("SELECT value FROM settings") == "kept"
        assert await db.fetch_value("SELECT count(*) FROM sqlite_master WHERE name IN ('fine', 'more')") == 0


def wait_for_copy(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not any(file.suffix == ".db" for file in backups(path)):
        assert time.monotonic() < deadline, "the migration never began"
        time.sleep(0.005)


async def test_a_migration_that_is_killed_leaves_the_old_version(path: Path, folder: Path) -> None:
    await make_old(path, folder)
    shipped = folder.parent / "shipped"
    shutil.copytree(folder, shipped)
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, randomblob(900) FROM n"
    add_migration(folder, f"CREATE TABLE more (id INTEGER, filler BLOB); INSERT INTO more {endless};")
    with start_python(UPGRADE, path, folder) as process:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
        try:
            await asyncio.to_thread(wait_for_copy, path)
            await asyncio.sleep(0.15)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == -signal.SIGKILL
    async with Database.open(path, migrations=shipped) as db:
        assert await db.fetch_value("PRAGMA user_version") == NEXT - 1
        assert await db.fetch_value("SELECT value FROM settings") == "kept"
        assert await db.fetch_value("SELECT count(*) FROM sqlite_master WHERE name = 'more'") == 0
        assert await db.fetch_value("PRAGMA quick_check") == "ok"


async def test_a_migration_whose_text_changed_is_named_and_nothing_is_touched(path: Path, folder: Path) -> None:
    add_migration(folder, "CREATE TABLE more (id INTEGER);")
    await make_old(path, folder)
    before = content(path)
    add_migration(folder, "CREATE TABLE more (id INTEGER, name TEXT);")
    with pytest.raises(DatabaseError, match=rf"ana\.db was made with another text of {NEXT:04}_more\.sql"):
        async with Database.open(path, migrations=folder):
            pass
    assert content(path) == before


async def test_a_newer_schema_says_both_versions_and_nothing_is_touched(path: Path, folder: Path) -> None:
    add_migration(folder, "CREATE TABLE more (id INTEGER);")
    await make_old(path, folder)
    before = content(path)
    with pytest.raises(DatabaseNewer, match=rf"version {NEXT}, this program knows {NEXT - 1}.*Install a newer Olvido"):
        async with Database.open(path):
            pass
    assert content(path) == before
