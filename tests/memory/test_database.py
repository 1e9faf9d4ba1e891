"""The database: transactions, snapshots, several processes, copies, closing."""

import asyncio
import gc
import os
import stat
import sys
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pysqlite3
import pytest

from memory.database import Database, forbid_in_transaction
from memory.errors import DatabaseBusy, DatabaseGone, DatabaseReadOnly
from memory.limits import Limits
from memory.testing import FakeClock, start_python

ADD = "INSERT INTO settings (key, value) VALUES (?, ?)"
SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) SELECT max(i) FROM n"
KEYS = "SELECT key FROM settings ORDER BY key"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people" / "ana.db"


@pytest.fixture
async def db(path: Path) -> AsyncIterator[Database]:
    async with Database.open(path, clock=FakeClock()) as database:
        yield database


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def move(file: Path, to: Path) -> None:
    """With what SQLite lays beside it."""
    for ending in ("", "-wal", "-shm"):
        if (each := file.with_name(file.name + ending)).exists():
            each.rename(to.with_name(to.name + ending))


def content(file: Path) -> bytes:
    return file.read_bytes()


async def add(db: Database, *keys: str) -> None:
    async with db.transaction() as tx:
        for key in keys:
            await tx.execute(ADD, (key, ""))


async def keys(db: Database) -> list[str]:
    return [row["key"] for row in await db.fetch_all(KEYS)]


# --- transactions


async def test_a_transaction_that_ends_well_is_kept(db: Database) -> None:
    await add(db, "a", "b")
    assert await keys(db) == ["a", "b"]


async def test_a_transaction_that_raises_leaves_nothing(db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as tx:
            await tx.execute(ADD, ("a", ""))
            raise ZeroDivisionError
    assert await keys(db) == []


async def test_a_cancelled_transaction_leaves_nothing_and_the_next_one_works(db: Database) -> None:
    inside = asyncio.Event()

    async def write() -> None:
        async with db.transaction() as tx:
            await tx.execute(ADD, ("a", ""))
            inside.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(write())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await add(db, "b")
    assert await keys(db) == ["b"]


async def test_cancelled_at_any_moment_a_transaction_is_whole_or_absent(db: Database) -> None:
    """Each loop step is a moment: before and during BEGIN, the statements and COMMIT."""

    async def write(number: int) -> None:
        async with db.transaction() as tx:
            await tx.execute(ADD, (f"{number}-first", ""))
            await tx.execute(ADD, (f"{number}-second", ""))

    outcomes = set()
    for number in range(60):
        task = asyncio.create_task(write(number))
        for _ in range(number // 2):
            await asyncio.sleep(0)
            if number % 3 == 0:
                await asyncio.sleep(0.0001)
        task.cancel()
        outcomes.add((await asyncio.gather(task, return_exceptions=True))[0] is None)
        count = await db.fetch_value("SELECT count(*) FROM settings WHERE key LIKE ?", (f"{number}-%",))
        assert count in (0, 2)
    assert outcomes == {True, False}, "some moments came before the end and some after"


async def test_cancelled_while_waiting_for_another_process_it_lets_go_of_what_it_gets(path: Path) -> None:
    async with Database.open(path) as one, Database.open(path) as two:
        async with one.transaction():
            task = asyncio.create_task(add(two, "a"))
            await asyncio.sleep(0.03)
            task.cancel()
            await asyncio.sleep(0.03)
        with pytest.raises(asyncio.CancelledError):
            await task
        await add(one, "b")
        await add(two, "c")
        assert await keys(two) == ["b", "c"]


async def test_cancelled_twice_while_undoing_it_still_undoes(db: Database) -> None:
    inside = asyncio.Event()

    async def write() -> None:
        async with db.transaction() as tx:
            await tx.execute(ADD, ("a", ""))
            inside.set()
            await tx.fetch_all(SLOW)

    task = asyncio.create_task(write())
    await inside.wait()
    await asyncio.sleep(0.01)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await keys(db) == []
    await add(db, "b")


async def test_a_cancelled_statement_does_not_stop_the_event_loop_until_it_ends(db: Database) -> None:
    async def write() -> None:
        async with db.transaction() as tx:
            await tx.fetch_all(SLOW)

    task = asyncio.create_task(write())
    await asyncio.sleep(0.02)
    task.cancel()
    turns = 0
    while not task.done():
        await asyncio.sleep(0.005)
        turns += 1
    assert turns > 5


async def test_a_statement_that_times_out_spoils_its_transaction(db: Database) -> None:
    with pytest.raises(RuntimeError, match="cancelled"):
        async with db.transaction() as tx:
            await tx.execute(ADD, ("a", ""))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.005):
                    await tx.fetch_all(SLOW)
    assert await keys(db) == []


async def test_a_transaction_inside_a_transaction_raises_at_once(db: Database) -> None:
    async with asyncio.timeout(5), db.transaction() as tx:
        with pytest.raises(RuntimeError, match="inside a transaction"):
            async with db.transaction():
                pass
        with pytest.raises(RuntimeError, match="inside a transaction"):
            await asyncio.wait_for(add(db, "inner"), timeout=4)
        await tx.execute(ADD, ("outer", ""))
    assert await keys(db) == ["outer"]


async def test_transactions_of_different_tasks_take_turns(db: Database) -> None:
    async def count_up() -> None:
        for _ in range(10):
            async with db.transaction() as tx:
                value = int(await tx.fetch_value("SELECT value FROM settings WHERE key = 'n'"))
                await asyncio.sleep(0)
                await tx.execute("UPDATE settings SET value = ? WHERE key = 'n'", (str(value + 1),))

    async with db.transaction() as tx:
        await tx.execute(ADD, ("n", "0"))
    await asyncio.gather(*(count_up() for _ in range(8)))
    assert await db.fetch_value("SELECT value FROM settings WHERE key = 'n'") == "80"


async def test_two_people_can_be_written_in_one_task(db: Database, tmp_path: Path) -> None:
    async with Database.open(tmp_path / "bea.db") as other:
        async with db.transaction() as ours, other.transaction() as theirs:
            await ours.execute(ADD, ("a", ""))
            await theirs.execute(ADD, ("b", ""))
        assert (await keys(db), await keys(other)) == (["a"], ["b"])


async def test_a_statement_tells_its_row_and_how_many(db: Database) -> None:
    async with db.transaction() as tx:
        first = await tx.execute(ADD, ("a", ""))
        many = await tx.execute_many(ADD, [("b", ""), ("c", "")])
        changed = await tx.execute("UPDATE settings SET value = :new", {"new": "x"})
    assert (first.lastrowid, many.rowcount, changed.rowcount) == (1, 2, 3)


async def test_a_refused_row_does_not_end_the_transaction(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute(ADD, ("a", ""))
        with pytest.raises(pysqlite3.IntegrityError):
            await tx.execute(ADD, ("a", "again"))
        await tx.execute(ADD, ("b", ""))
    assert await keys(db) == ["a", "b"]


async def test_a_mistake_in_sql_is_not_disguised(db: Database) -> None:
    with pytest.raises(pysqlite3.OperationalError, match="syntax error"):
        await db.fetch_all("SELEKT 1")


async def test_a_transaction_sqlite_undid_cannot_go_on_by_halves(db: Database) -> None:
    with pytest.raises(pysqlite3.IntegrityError):
        async with db.transaction() as tx:
            await tx.execute(ADD, ("a", ""))
            for key in ("a", "b"):  # the first ends the transaction; the second must not be committed by itself
                with pytest.raises(pysqlite3.IntegrityError):
                    await tx.execute("INSERT OR ROLLBACK INTO settings VALUES (?, '')", (key,))
    assert await keys(db) == []


async def test_a_transaction_cannot_be_used_after_its_end(db: Database) -> None:
    async with db.transaction() as tx:
        pass
    with pytest.raises(RuntimeError, match="over"):
        await tx.execute(ADD, ("a", ""))


async def test_what_must_not_happen_in_a_transaction_is_refused_there_only(db: Database) -> None:
    forbid_in_transaction("a model call")
    async with db.snapshot():
        forbid_in_transaction("a model call")
    async with db.transaction():
        with pytest.raises(RuntimeError, match="a model call inside a transaction"):
            forbid_in_transaction("a model call")
    forbid_in_transaction("a model call")


async def test_another_task_is_not_in_this_ones_transaction(db: Database) -> None:
    held, done = asyncio.Event(), asyncio.Event()

    async def bystander() -> list[str]:
        await held.wait()
        forbid_in_transaction("a model call")
        seen = await keys(db)
        done.set()
        return seen

    task = asyncio.create_task(bystander())
    async with db.transaction() as tx:
        await tx.execute(ADD, ("a", ""))
        held.set()
        await done.wait()
    assert await task == [], "reads neither wait for the writer nor see its unfinished work"


# --- reading


async def test_inside_a_transaction_reads_see_its_own_writes(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute(ADD, ("a", "1"))
        assert await keys(db) == ["a"]
        assert await tx.fetch_value("SELECT value FROM settings") == "1"
        async with db.snapshot() as view:
            assert len(await view.fetch_all(KEYS)) == 1
        first, second = await asyncio.gather(keys(db), keys(db))
        assert first == second == ["a"]


async def test_a_snapshot_sees_one_state_while_others_write(db: Database) -> None:
    await add(db, "a")
    write, written = asyncio.Event(), asyncio.Event()

    async def writer() -> None:
        await write.wait()
        await add(db, "b")
        written.set()

    task = asyncio.create_task(writer())
    async with db.snapshot() as view:
        write.set()
        await written.wait()
        assert len(await view.fetch_all(KEYS)) == 1
        assert await keys(db) == ["a"]
    await task
    assert await keys(db) == ["a", "b"]


async def test_a_read_after_a_write_sees_it_even_beside_an_older_snapshot(db: Database) -> None:
    release = asyncio.Event()

    async def old_reader() -> None:
        async with db.snapshot():
            await release.wait()

    async def write_then_read() -> list[str]:
        await add(db, "a")
        return await keys(db)

    reader = asyncio.create_task(old_reader())
    await asyncio.sleep(0.02)
    task = asyncio.create_task(write_then_read())
    await asyncio.sleep(0.02)
    release.set()
    assert await task == ["a"]
    await reader


async def test_nothing_can_be_written_outside_a_transaction(db: Database) -> None:
    with pytest.raises(RuntimeError, match="only a transaction may write"):
        await db.fetch_all("INSERT INTO settings VALUES ('a', '') RETURNING key")
    async with db.snapshot() as view:
        with pytest.raises(RuntimeError, match="only a transaction may write"):
            await view.fetch_all("DELETE FROM settings")


async def test_found_nothing_is_none_and_rows_have_names(db: Database) -> None:
    assert await db.fetch_one(KEYS) is None
    assert await db.fetch_value(KEYS) is None
    await add(db, "a")
    row = await db.fetch_one("SELECT key, value FROM settings")
    assert row is not None
    assert (row["key"], row[1], tuple(row)) == ("a", "", ("a", ""))


async def test_vectors_and_full_text_are_there_for_both_connections(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("CREATE VIRTUAL TABLE vectors_1 USING vec0(embedding float[2])")
        await tx.execute("INSERT INTO vectors_1 (rowid, embedding) VALUES (7, '[1, 0]')")
        await tx.execute("INSERT INTO entries_fts (rowid, stems) VALUES (7, 'canción')")
    assert await db.fetch_value("SELECT rowid FROM vectors_1 WHERE embedding MATCH '[1, 0]' AND k = 1") == 7
    assert await db.fetch_value("SELECT rowid FROM entries_fts WHERE entries_fts MATCH 'cancion'") == 7


async def test_the_file_is_durable_private_and_forgets_for_good(db: Database, path: Path) -> None:
    async with db.transaction() as tx:
        pragmas = {
            name: await tx.fetch_value(f"PRAGMA {name}")
            for name in (
                "journal_mode",
                "synchronous",
                "foreign_keys",
                "secure_delete",
                "trusted_schema",
                "busy_timeout",
            )
        }
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "secure_delete": 1,
        "trusted_schema": 0,
        "busy_timeout": Limits().busy_timeout_ms,
    }
    assert mode(path) == 0o600
    assert mode(path.with_name("ana.db-wal")) == 0o600
    assert mode(path.parent) == 0o700


async def test_after_a_checkpoint_no_deleted_byte_is_left(db: Database, path: Path) -> None:
    secret = "xylophone-4711"
    async with db.transaction() as tx:
        await tx.execute(ADD, (secret, secret * 900))
        await tx.execute("INSERT INTO entries_fts (rowid, stems) VALUES (1, ?)", (secret,))
    assert await db.checkpoint()
    assert secret.encode() in content(path)
    async with db.transaction() as tx:
        await tx.execute("DELETE FROM settings")
        await tx.execute("DELETE FROM entries_fts WHERE rowid = 1")
    assert await db.checkpoint()
    left = content(path) + content(path.with_name("ana.db-wal"))
    assert secret.encode() not in left
    assert b"xylophon" not in left


async def test_a_checkpoint_says_when_a_reader_kept_part_of_the_log(path: Path) -> None:
    limits = Limits(busy_timeout_ms=50)
    async with Database.open(path, limits=limits) as db, Database.open(path, limits=limits) as other:
        async with other.snapshot():
            await add(db, "a")
            assert not await db.checkpoint()
        assert await db.checkpoint()


async def test_a_checkpoint_inside_a_transaction_or_snapshot_is_refused(db: Database) -> None:
    async with db.transaction():
        with pytest.raises(RuntimeError):
            await db.checkpoint()
    async with db.snapshot():
        with pytest.raises(RuntimeError):
            await db.checkpoint()


# --- copies


async def test_a_backup_is_one_private_file_that_opens_with_everything(db: Database, tmp_path: Path) -> None:
    await add(db, "a")
    copy = tmp_path / "copies" / "ana.db"
    await db.backup(copy)
    assert mode(copy) == 0o600
    assert names(copy.parent) == {"ana.db"}
    async with Database.open(copy) as restored:
        assert await keys(restored) == ["a"]
        assert await restored.fetch_value("SELECT count(*) FROM openings") == 1, "the copy is not open elsewhere"


async def test_a_backup_while_others_write_is_one_consistent_state(db: Database, tmp_path: Path) -> None:
    stop = asyncio.Event()

    async def write_pairs() -> None:
        number = 0
        while not stop.is_set():
            await add(db, f"{number:05}-a", f"{number:05}-b")
            number += 1

    writer = asyncio.create_task(write_pairs())
    for round_number in range(5):
        await asyncio.sleep(0.01)
        await db.backup(tmp_path / f"{round_number}.db")
    stop.set()
    await writer
    counts = []
    for round_number in range(5):
        async with Database.open(tmp_path / f"{round_number}.db") as copy:
            counts.append(await copy.fetch_value("SELECT count(*) FROM settings"))
    assert counts == sorted(counts)
    assert all(count % 2 == 0 for count in counts)
    assert counts[-1] > 0


async def test_a_backup_replaces_an_older_one_but_never_a_file_in_use(db: Database, path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await db.backup(copy)
    await add(db, "a")
    await db.backup(copy)
    async with Database.open(copy) as restored:
        assert await keys(restored) == ["a"]
        with pytest.raises(DatabaseBusy, match="in use"):
            await db.backup(copy)
    with pytest.raises(DatabaseBusy, match="in use"):
        await db.backup(path)


async def test_a_backup_that_fails_leaves_nothing_behind(db: Database, tmp_path: Path) -> None:
    target = tmp_path / "occupied"
    target.mkdir()
    (target / "something").touch()
    with pytest.raises(DatabaseReadOnly, match="occupied"):
        await db.backup(target)
    assert names(tmp_path) == {"occupied", "people"}


# --- opening and closing


async def test_closing_leaves_one_file_and_nothing_open(path: Path) -> None:
    async with Database.open(path) as db:
        await add(db, "a")
    assert names(path.parent) == {"ana.db"}
    with pytest.raises(RuntimeError, match="closed"):
        await db.fetch_all(KEYS)
    with pytest.raises(RuntimeError, match="closed"):
        await add(db, "b")
    async with Database.open(path) as db:
        assert await keys(db) == ["a"]
        assert not db.recovered


async def test_closing_waits_for_a_transaction_that_is_under_way(path: Path) -> None:
    inside = asyncio.Event()

    async def write(db: Database) -> None:
        async with db.transaction() as tx:
            inside.set()
            await asyncio.sleep(0.02)
            await tx.execute(ADD, ("a", ""))

    async with Database.open(path) as db:
        task = asyncio.create_task(write(db))
        await inside.wait()
    await task
    async with Database.open(path) as db:
        assert await keys(db) == ["a"]


async def test_an_opening_that_is_cancelled_leaves_nothing_open(path: Path) -> None:
    async def hold() -> None:
        async with Database.open(path):
            await asyncio.sleep(60)

    for delay in (0, 0.001, 0.005, 0.02):
        task = asyncio.create_task(hold())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        gc.collect()
    async with Database.open(path) as db:
        assert not db.recovered
        assert await db.fetch_value("SELECT count(*) FROM openings") == 1


async def test_one_process_may_open_a_file_several_times(path: Path) -> None:
    async with Database.open(path) as one, Database.open(path) as two:
        assert not two.recovered
        await asyncio.gather(
            *(add(database, f"{name}{n}") for n in range(20) for name, database in (("a", one), ("b", two)))
        )
        assert len(await keys(one)) == len(await keys(two)) == 40


async def test_a_file_locked_for_too_long_says_so(path: Path) -> None:
    limits = Limits(busy_timeout_ms=50)
    async with Database.open(path, limits=limits) as one, Database.open(path, limits=limits) as two:
        async with one.transaction():
            with pytest.raises(DatabaseBusy, match=r"ana\.db locked for too long"):
                await add(two, "a")
        await add(two, "a")
        async with one.transaction():
            with pytest.raises(DatabaseBusy):
                async with Database.open(path, limits=limits):
                    pass


async def test_opening_waits_for_a_reader_that_keeps_the_file_from_its_write_ahead_log(
    db: Database, tmp_path: Path
) -> None:
    """Every new file and every restored copy goes through this switch."""
    copy = tmp_path / "copy.db"
    await db.backup(copy)
    reader = pysqlite3.connect(copy, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM settings").fetchall()
    asyncio.get_running_loop().call_later(0.1, reader.close)
    async with Database.open(copy) as restored:
        assert await restored.fetch_value("PRAGMA journal_mode") == "wal"


async def test_odd_names_are_names(tmp_path: Path) -> None:
    odd = tmp_path / "a?mode=ro#b%20 ü 记.db"
    async with Database.open(odd) as db:
        await add(db, "a")
    assert names(tmp_path) == {odd.name}


# --- several processes

WRITE_500 = """
import asyncio, sys
from memory.database import Database

async def main(path, name):
    async with Database.open(path) as db:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(500):
            async with db.transaction() as tx:
                count = await tx.fetch_value("SELECT count(*) FROM settings")
                await tx.execute("INSERT INTO settings VALUES (?, ?)", (f"{name}{number}", str(count)))
            await db.fetch_value("SELECT count(*) FROM settings")
        assert not db.recovered

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_write_500_rows_each_at_once(path: Path) -> None:
    processes = [start_python(WRITE_500, path, name) for name in "ab"]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [(process.communicate()[1], process.returncode) for process in processes] == [("", 0), ("", 0)]
    async with Database.open(path) as db:
        order = await db.fetch_all("SELECT CAST(value AS INTEGER) AS n FROM settings ORDER BY n")
        assert [row["n"] for row in order] == list(range(1000)), "each saw everything before it"


OPEN_AND_ADD = """
import asyncio, sys, time
from memory.database import Database

async def main(path, name, times):
    for number in range(int(times)):
        async with Database.open(path) as db:
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO settings VALUES (?, '')", (f"{name}-{number}",))
            assert not db.recovered

sys.stdin.readline()
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("times", [1, 25], ids=["a new file", "opening while others close"])
async def test_8_processes_open_a_file_at_once(path: Path, times: int) -> None:
    processes = [start_python(OPEN_AND_ADD, path, name, times) for name in "abcdefgh"]
    results = await asyncio.gather(*(asyncio.to_thread(process.communicate, "go\n") for process in processes))
    assert [error for _, error in results] == [""] * 8
    assert {process.returncode for process in processes} == {0}
    async with Database.open(path) as db:
        assert await db.fetch_value("SELECT count(*) FROM settings") == 8 * times
        assert await db.fetch_value("SELECT count(*) FROM openings") == 1
    assert names(path.parent) == {"ana.db"}


FORGET_TO_CLOSE = """
import asyncio, sys
from memory.database import Database

async def main(path):
    opening = Database.open(path)
    db = await opening.__aenter__()
    kept.append((opening, db))
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO settings VALUES ('a', '')")

kept = []
loop = asyncio.new_event_loop()
loop.run_until_complete(main(sys.argv[1]))
"""


async def test_a_process_that_forgets_to_close_still_exits_and_lost_nothing(path: Path) -> None:
    process = start_python(FORGET_TO_CLOSE, path)
    await asyncio.wait_for(asyncio.to_thread(process.communicate), timeout=20)
    assert process.returncode == 0
    async with Database.open(path) as db:
        assert await keys(db) == ["a"]
        assert db.recovered


async def test_a_process_that_is_alive_is_no_unclean_stop(path: Path) -> None:
    process = start_python(WRITE_500, path, "other")
    try:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        async with Database.open(path) as db:
            assert not db.recovered
            assert await db.fetch_value("SELECT count(*) FROM openings") == 2
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("pid", "boot", "started"),
    [
        (os.getpid(), "same", "same"),
        (os.getppid(), "another boot", "same"),
        (os.getppid(), "same", "1"),
        (2**22 + 1, "same", ""),
    ],
    ids=["our own id of an earlier process", "before a restart", "an id used again", "no such process"],
)
async def test_a_row_of_a_dead_process_is_an_unclean_stop_once(path: Path, pid: int, boot: str, started: str) -> None:
    if started == "1" and sys.platform != "linux":
        pytest.skip("this system does not tell when a process began")
    async with Database.open(path) as db, db.transaction() as tx:
        await tx.execute(
            "INSERT INTO openings SELECT 'other', ?, iif(? = 'same', boot, ?), iif(? = 'same', started, ?), opened_at "
            "FROM openings",
            (pid, boot, boot, started, started),
        )
    async with Database.open(path) as db:
        assert db.recovered
    async with Database.open(path) as db:
        assert not db.recovered


async def test_nothing_is_written_into_a_file_that_was_deleted_or_replaced(db: Database, path: Path) -> None:
    """SQLite would go on in the file nobody can find any more, and with the last connection all of it would be gone."""
    await add(db, "a")
    aside, other = (path.with_suffix(ending) for ending in (".aside", ".other"))
    move(path, aside)
    with pytest.raises(DatabaseGone, match="restore"):
        await add(db, "b")
    async with Database.open(path) as another:
        with pytest.raises(DatabaseGone, match="replaced"):
            await add(db, "c")
        assert await keys(another) == []
    move(path, other)
    move(aside, path)
    await add(db, "d")
    assert await keys(db) == ["a", "d"]
