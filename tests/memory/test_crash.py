"""What a person's file survives: kill -9, damage, files that are not ours, disks that are full or cannot be written."""

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pysqlite3
import pytest

from memory.database import Database, translate
from memory.errors import DatabaseCorrupt, DatabaseError, DatabaseFull, DatabaseReadOnly
from memory.limits import Limits
from memory.testing import start_python, write_until_killed

ADD = "INSERT INTO settings (key, value) VALUES (?, ?)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ana.db"


def content(file: Path) -> bytes:
    return file.read_bytes()


def put(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def protect(file: Path) -> None:
    file.chmod(0o400)


async def make(path: Path, rows: int = 2000) -> None:
    """A memory most of whose pages are rows, so that its middle is none of the schema's."""
    async with Database.open(path) as db, db.transaction() as tx:
        await tx.execute_many(ADD, [(f"{number:05}", "words " * 100) for number in range(rows)])


async def open_and_close(path: Path, limits: Limits | None = None) -> None:
    async with Database.open(path, limits=limits or Limits()):
        pass


# --- kill -9


async def test_nothing_acknowledged_is_lost_when_the_process_is_killed(path: Path) -> None:
    acknowledged: set[int] = set()
    for _ in range(5):
        acknowledged.update(write_until_killed(path, random.uniform(0, 0.2)))
        async with Database.open(path) as db:
            assert db.recovered
            rows = await db.fetch_all("SELECT id FROM entries JOIN entries_fts ON entries_fts.rowid = entries.id")
            assert acknowledged <= {row["id"] for row in rows}
            assert await db.fetch_value("SELECT CAST(value AS INTEGER) FROM settings") == max(row["id"] for row in rows)
            assert await db.fetch_value("PRAGMA integrity_check") == "ok"
    async with Database.open(path) as db:
        assert not db.recovered


async def test_damage_found_after_a_kill_leaves_the_file_and_its_log_as_they_were(path: Path) -> None:
    await open_and_close(path)  # so that the schema is in the file, and not only in its log
    write_until_killed(path, 0.1)
    log = path.with_name("ana.db-wal")
    overwrite_page(path, 1)
    log.write_bytes(b"")  # the log is lost with it: nothing in it can stand in for the damaged page
    before = content(path)
    with pytest.raises(DatabaseCorrupt):
        await open_and_close(path)
    assert (content(path), content(log)) == (before, b"")


# --- damage, and files that are not ours


def overwrite_page(path: Path, number: int) -> None:
    with path.open("r+b") as file:
        file.seek(number * 4096)
        file.write(random.randbytes(4096))


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 8192 * 4096)


def write_over(start: int, data: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(start)
            file.write(data)

    return damage


def overwrite_middle(path: Path) -> None:
    overwrite_page(path, path.stat().st_size // 8192)


@pytest.mark.parametrize(
    "damage",
    [
        write_over(0, b"\0" * 16),
        write_over(16, b"\0\7"),
        write_over(0, random.Random(1).randbytes(100)),
        write_over(40, b"\xff" * 20),
        overwrite_middle,
        cut_in_half,
        lambda path: path.write_bytes(random.randbytes(20_000)),
        lambda path: path.write_text("hello"),
    ],
    ids=["magic", "page size", "header", "schema format", "middle page", "cut", "garbage", "a short text"],
)
async def test_a_damaged_file_is_refused_and_left_as_it_is(path: Path, damage: Callable[[Path], None]) -> None:
    await make(path)
    damage(path)
    before = content(path)
    with pytest.raises(DatabaseCorrupt, match=r"ana\.db is damaged.*a copy of yours.*, or move the file away"):
        await open_and_close(path)
    assert content(path) == before


async def test_the_newest_copy_is_named_when_there_is_one(path: Path) -> None:
    (path.parent / "backups").mkdir()
    for name in ("ana-v9-20260301T000000Z.db", "ana-v10-20260401T000000Z.db", "ana-maria-v1-20270101T000000Z.db"):
        (path.parent / "backups" / name).touch()
    put(path, b"hello")
    with pytest.raises(DatabaseCorrupt, match=r"newest copy, .*ana-v10-20260401T000000Z\.db,"):
        await open_and_close(path)
    for name in ("ana-20260501T000000Z.db", "ana-20260501T000000Z-2.db", "ana-replaced-20260601T000000Z.db"):
        (path.parent / "backups" / name).touch()  # a regular one, and one that was given up
    with pytest.raises(DatabaseCorrupt, match=r"newest copy, .*ana-20260501T000000Z(-2)?\.db,"):
        await open_and_close(path)


async def test_an_empty_file_is_a_new_memory_only_where_nothing_says_otherwise(path: Path) -> None:
    put(path, b"")  # a first start that was killed leaves this
    await open_and_close(path)
    put(path, b"")
    path.with_name("ana.db-wal").write_bytes(b"what waits to be moved into the file")
    with pytest.raises(DatabaseCorrupt, match="damaged"):
        await open_and_close(path)
    assert names(path.parent) == ["ana.db", "ana.db-wal"]
    path.with_name("ana.db-wal").unlink()
    (path.parent / "backups").mkdir()
    (path.parent / "backups" / "ana-v1-20260301T000000Z.db").touch()
    with pytest.raises(DatabaseCorrupt, match="newest copy"):
        await open_and_close(path)
    assert content(path) == b""


async def test_a_large_file_is_checked_only_after_an_unclean_stop(path: Path) -> None:
    limits = Limits(check_on_open_bytes=1)
    await make(path)
    overwrite_middle(path)
    async with Database.open(path, limits=limits) as db, db.transaction() as tx:
        await tx.execute("INSERT INTO openings VALUES ('gone', 1, 'an earlier boot', '', '')")
    before = content(path)
    with pytest.raises(DatabaseCorrupt):
        await open_and_close(path, limits)
    assert content(path) == before


def make_foreign(path: Path, application: int) -> None:
    connection = pysqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.execute(f"PRAGMA application_id = {application}")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("application", [0, 4711])
async def test_another_programs_sqlite_file_is_refused_and_left_as_it_is(path: Path, application: int) -> None:
    make_foreign(path, application)
    before = content(path)
    with pytest.raises(DatabaseCorrupt, match=r"ana\.db is not a memory of Olvido"):
        await open_and_close(path)
    assert content(path) == before


async def test_an_empty_file_is_a_new_memory(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT))
    await make(path)
    await open_and_close(path)
    assert len(content(path)) > 0


async def test_a_first_opening_killed_before_it_wrote_is_a_new_memory(path: Path) -> None:
    connection = pysqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert len(content(path)) > 0
    await make(path)


HALF_WRITTEN = """
import os, signal, sys
import pysqlite3

connection = pysqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = DELETE")
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE settings SET value = upper(value)")
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_a_rollback_journal_left_by_a_killed_process_is_put_back(path: Path) -> None:
    """As when a first opening is killed before its switch to the write-ahead log, or a copy is edited by hand."""
    await make(path)
    start_python(HALF_WRITTEN, path).communicate()
    assert content(path.with_name("ana.db-journal"))
    async with Database.open(path) as db:
        assert await db.fetch_value("SELECT count(*) FROM settings WHERE value GLOB 'words*'") == 2000


# --- places that cannot be written


async def test_a_directory_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseReadOnly, match=r"cannot be opened for writing.*is a file"):
        await open_and_close(tmp_path)
    assert names(tmp_path) == []


async def test_a_file_in_place_of_the_folder_is_refused(path: Path) -> None:
    await make(path)
    before = content(path)
    with pytest.raises(DatabaseReadOnly, match=r"below\.db"):
        await open_and_close(path / "below.db")
    assert content(path) == before


@contextmanager
def disk(folder: Path, options: str) -> Iterator[None]:
    """A file system of its own on a folder, or the test is skipped."""
    folder.mkdir(exist_ok=True)
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode != 0:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def read_only(folder: Path, file: Path | None) -> Iterator[None]:
    """A folder nobody can write to, holding a copy of a file: by permissions, which root ignores, or by a mount."""
    if os.geteuid() != 0:
        folder.mkdir()
        if file is not None:
            (folder / file.name).write_bytes(content(file))
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)
        return
    with disk(folder, "size=4m"):
        if file is not None:
            (folder / file.name).write_bytes(content(file))
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield


@pytest.mark.parametrize("there", [True, False], ids=["a file in it", "a new file"])
async def test_a_read_only_folder_is_refused_and_left_as_it_is(tmp_path: Path, path: Path, there: bool) -> None:
    await make(path)
    folder = tmp_path / "fixed"
    with read_only(folder, path if there else None):
        with pytest.raises(DatabaseReadOnly, match=r"fixed.*ana\.db cannot be opened for writing.*can be written"):
            await open_and_close(folder / "ana.db")
        assert names(folder) == ["ana.db"] * there
        assert not there or content(folder / "ana.db") == content(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
async def test_a_read_only_file_is_refused(path: Path) -> None:
    await make(path)
    protect(path)
    with pytest.raises(DatabaseReadOnly):
        await open_and_close(path)


# --- full disks


def fill(folder: Path) -> Path:
    """Take all the space that is left."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096) == 4096:
                pass
        except OSError:
            pass
    return filler


async def test_a_full_disk_loses_nothing_and_the_connection_goes_on_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    with disk(folder, "size=3m"):
        path = folder / "ana.db"
        async with Database.open(path) as db:
            async with db.transaction() as tx:
                await tx.execute(ADD, ("before", ""))
            filler = fill(folder)
            with pytest.raises(
                DatabaseFull, match=r"disk that holds .*ana\.db is full: nothing was changed. Free some"
            ):
                async with db.transaction() as tx:
                    for number in range(1000):
                        await tx.execute(ADD, (f"during {number}", "words " * 500))
            assert await db.fetch_value("SELECT group_concat(key) FROM settings") == "before"
            filler.unlink()
            async with db.transaction() as tx:
                await tx.execute(ADD, ("later", ""))
        async with Database.open(path) as db:
            assert await db.fetch_value("SELECT group_concat(key) FROM settings") == "before,later"
            assert not db.recovered


async def test_opening_on_a_full_disk_says_so_and_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    with disk(folder, "size=3m"):
        path = folder / "ana.db"
        await make(path, rows=20)
        before = content(path)
        filler = fill(folder)
        with pytest.raises(DatabaseFull, match="is full"):
            await open_and_close(path)
        with pytest.raises(DatabaseFull, match=r"new\.db is full"):
            await open_and_close(folder / "new.db")
        assert content(path) == before
        filler.unlink()
        await open_and_close(path)
        await open_and_close(folder / "new.db")


async def test_a_backup_to_a_full_disk_leaves_nothing_there(tmp_path: Path, path: Path) -> None:
    folder = tmp_path / "small"
    await make(path)
    with disk(folder, "size=500k"):
        async with Database.open(path) as db:
            with pytest.raises(DatabaseFull, match=r"copy\.db is full"):
                await db.backup(folder / "copy.db")
        assert names(folder) == []


WRITE_TO_THE_LIMIT = """
import asyncio, resource, sys
from memory.database import Database
from memory.errors import DatabaseError

async def main(path):
    async with Database.open(path) as db:
        written = 0
        try:
            while True:
                async with db.transaction() as tx:
                    await tx.execute("INSERT INTO settings VALUES (?, ?)", (str(written), "words " * 2000))
                written += 1
        except DatabaseError as exc:
            print(written, type(exc).__name__, exc)

resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
asyncio.run(main(sys.argv[1]))
"""


async def test_a_file_that_may_not_grow_loses_nothing_acknowledged(path: Path) -> None:
    """Needs no mount: the system refuses to let the process write larger files."""
    output, _ = start_python(WRITE_TO_THE_LIMIT, path).communicate()
    written, sentence = output.split(maxsplit=1)
    assert "nothing was changed" in sentence
    async with Database.open(path) as db:
        assert await db.fetch_value("SELECT count(*) FROM settings") == int(written) > 0


# --- errors in words


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (pysqlite3.SQLITE_FULL, DatabaseFull),
        (pysqlite3.SQLITE_READONLY | 4 << 8, DatabaseReadOnly),
        (pysqlite3.SQLITE_CANTOPEN, DatabaseReadOnly),
        (pysqlite3.SQLITE_CORRUPT | 1 << 8, DatabaseCorrupt),
        (pysqlite3.SQLITE_IOERR | 3 << 8, DatabaseError),
    ],
)
def test_each_family_of_errors_has_its_class_and_names_the_file(path: Path, code: int, kind: type[Exception]) -> None:
    raised = pysqlite3.OperationalError("whatever SQLite says")
    raised.sqlite_errorcode = code
    said = translate(raised, path)
    assert type(said) is kind
    assert str(path) in str(said)
    assert "nothing was changed" in str(said)
