"""A person's file on the disk: opening a connection, what its errors mean, its copies, its schema, its soundness.

A migration is one file ``NNNN_name.sql``, applied and recorded in one transaction, and never edited once released:
its hash is recorded in every file it was applied to.

Everything here blocks; ``memory.database`` calls it in a connection's own thread.
"""

import errno
import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import pysqlite3

from memory.errors import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseError,
    DatabaseFull,
    DatabaseNewer,
    DatabaseReadOnly,
)
from memory.limits import Limits
from memory.ports import Clock

if TYPE_CHECKING:  # pysqlite3 carries no types; its classes have the shape of the standard library's
    from sqlite3 import Connection

Mode = Literal["ro", "rw", "rwc"]

APPLICATION_ID = 0x4F4C5649  # "OLVI"; set by the first migration
SHIPPED: Traversable = resources.files("memory") / "migrations"

# Openings this process holds: tells a row of ours from one a dead process with the same id left (containers).
_HELD: set[str] = set()
_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_COPY = re.compile(r"(?:v\d+-)?(\d{8}T\d{6}Z)(?:-\d+)?\.db")  # made before an upgrade, or regularly


_KINDS: dict[int, type[DatabaseError]] = {
    pysqlite3.SQLITE_FULL: DatabaseFull,
    pysqlite3.SQLITE_READONLY: DatabaseReadOnly,
    pysqlite3.SQLITE_CANTOPEN: DatabaseReadOnly,
    pysqlite3.SQLITE_PERM: DatabaseReadOnly,
    pysqlite3.SQLITE_CORRUPT: DatabaseCorrupt,
    pysqlite3.SQLITE_NOTADB: DatabaseCorrupt,
    pysqlite3.SQLITE_BUSY: DatabaseBusy,
    pysqlite3.SQLITE_LOCKED: DatabaseBusy,
    pysqlite3.SQLITE_PROTOCOL: DatabaseBusy,
    pysqlite3.SQLITE_IOERR: DatabaseError,
}
_WITHOUT_CODE = {  # a failed backup carries SQLite's words only
    "database or disk is full": pysqlite3.SQLITE_FULL,
    "attempt to write a readonly database": pysqlite3.SQLITE_READONLY,
    "database is locked": pysqlite3.SQLITE_BUSY,
    "disk I/O error": pysqlite3.SQLITE_IOERR,
}
_SENTENCES: dict[type[DatabaseError], str] = {
    DatabaseFull: "The disk that holds {0} is full: nothing was changed. Free some space and try again.",
    DatabaseReadOnly: "{0} cannot be opened for writing: nothing was changed. Make sure that it is a file, and that "
    "it and its folder exist, belong to you and can be written.",
    DatabaseBusy: "Another program kept {0} locked for too long: nothing was changed. Close it, or try again later.",
    DatabaseError: "The disk that holds {0} reported an error: nothing was changed. Check the disk and try again.",
}


def translate(exc: Exception, path: Path) -> Exception:
    """The engine's error, with a sentence for the user, for one of SQLite's or the system's; SQL mistakes stay."""
    kind = kind_of(exc, path)
    if kind is None:
        return exc
    return damaged(path) if kind is DatabaseCorrupt else kind(_SENTENCES[kind].format(path))


def kind_of(exc: Exception, path: Path) -> type[DatabaseError] | None:
    """The class of error an exception of SQLite or the system belongs to."""
    if isinstance(exc, OSError):
        if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return DatabaseFull
        return DatabaseError if exc.errno == errno.EIO else DatabaseReadOnly
    family = getattr(exc, "sqlite_errorcode", _WITHOUT_CODE.get(str(exc), 0)) & 0xFF
    # SQLite keeps the system's reason to itself when its shared-memory or WAL file cannot grow
    if family in (pysqlite3.SQLITE_IOERR, pysqlite3.SQLITE_CANTOPEN):
        with suppress(OSError):
            space = os.statvfs(path.parent)
            if space.f_bavail == 0 or (space.f_files > 0 and space.f_favail == 0):
                return DatabaseFull
    return _KINDS.get(family)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Errors of SQLite and the system leave this block as the engine's."""
    try:
        yield
    except (pysqlite3.Error, OSError) as exc:
        error = translate(exc, path)
        if error is exc:
            raise
        raise error from exc


def prepare_place(path: Path) -> None:
    """Make the folder; raise where SQLite would open what it can only read, and fail at the first write."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = path.exists()
    if there and not path.is_file():
        raise IsADirectoryError(errno.EISDIR, "not a file", str(path))
    if not os.access(path.parent, os.R_OK | os.W_OK | os.X_OK) or (there and not os.access(path, os.R_OK | os.W_OK)):
        raise PermissionError(errno.EACCES, "not readable and writable", str(path))


def connect(path: Path, mode: Mode, limits: Limits) -> "Connection":
    """A plain connection with sqlite-vec; pysqlite3, because many Pythons cannot load extensions."""
    connection: Connection = pysqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=limits.busy_timeout_ms / 1000
    )
    try:
        connection.enable_load_extension(True)
        connection.load_extension(_vector_extension())
        connection.enable_load_extension(False)
        # a tampered file cannot make a trigger or a view call an extension (so ours may not touch vec0 either)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


@cache
def _vector_extension() -> str:
    """The file of sqlite-vec; the package is not imported, it would load numpy also to list a few facts."""
    spec = find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("sqlite_vec")
    return str(Path(spec.origin).with_name("vec0"))


def copy(source: Path, to: Path, limits: Limits) -> None:
    """A checked copy of one consistent state, under its final name only when it is whole and on the disk."""
    partial_copy = to.with_name(f".{to.name}.{uuid4().hex}.partial")
    with translated(to):
        to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if to.with_name(f"{to.name}-wal").exists():
            raise DatabaseBusy(f"{to} is in use: nothing was changed. Choose another name for the copy.")
        try:
            with (
                closing(connect(source, "ro", limits)) as origin,
                closing(connect(partial_copy, "rwc", limits)) as target,
            ):
                partial_copy.chmod(0o600)
                target.execute("PRAGMA synchronous = OFF")
                origin.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")  # one file that needs no other beside it
                target.execute("DELETE FROM openings")
                check(target, source)
            _fsync(partial_copy)
            partial_copy.replace(to)
            _fsync(to.parent)
        finally:
            partial_copy.unlink(missing_ok=True)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step from a version of the schema to the next."""

    number: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """The hash recorded where it was applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.number:04}_{self.name}.sql"


def load(folder: Traversable = SHIPPED) -> tuple[Migration, ...]:
    """The migrations in a folder, in order; they are numbered from 0001 without a gap."""
    found = []
    for file in folder.iterdir():
        if match := _FILE_NAME.fullmatch(file.name):
            found.append(Migration(number=int(match[1]), name=match[2], sql=file.read_text(encoding="utf-8")))
        elif file.name.endswith(".sql"):
            raise ValueError(f"{file.name} is not named like 0001_name.sql")
    found.sort(key=lambda migration: migration.number)
    numbers = [migration.number for migration in found]
    if not found or numbers != list(range(1, len(found) + 1)):
        raise ValueError(f"migrations must be numbered 0001, 0002, ... without a gap, not {numbers}")
    return tuple(found)


def statements(sql: str) -> Iterator[str]:
    """The single statements of a script; SQLite itself says where each ends, so strings and triggers stay whole."""
    pending = ""
    for piece in re.split(r"(?<=;)", sql):
        pending += piece
        if pysqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
    rest = re.sub(r"--[^\n]*|/\*.*?\*/", "", pending, flags=re.DOTALL).strip()
    if rest:
        raise ValueError(f"the script ends inside a statement: {rest[:60]!r}")


def version(connection: "Connection") -> int:
    """The number of the last migration a file has seen; 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def verify(connection: "Connection", migrations: Sequence[Migration], path: Path) -> None:
    """Refuse a file that a newer Olvido wrote, or that another text of one of these migrations made; reads only."""
    current = version(connection)
    if current > len(migrations):
        raise DatabaseNewer(
            f"{path} was written by a newer Olvido (its schema is version {current}, this program knows "
            f"{len(migrations)}): nothing was changed. Install a newer Olvido."
        )
    if current == 0:
        return
    recorded = dict(connection.execute("SELECT number, sha256 FROM migrations").fetchall())
    for migration in migrations[:current]:
        if recorded.get(migration.number) != migration.sha256:
            raise DatabaseError(
                f"{path} was made with another text of {migration.file_name} than this program ships: nothing was "
                f"changed. Install the Olvido that made it, or a released one."
            )


def migrate(
    connection: "Connection",
    migrations: Sequence[Migration],
    *,
    path: Path,
    clock: Clock,
    before_upgrade: Callable[[int], None],
) -> None:
    """Bring a file to the newest version, all in one transaction: it is at the old version or at the newest.

    So a new file is never seen half made, and a file that could not be upgraded still serves the program it came
    from. ``before_upgrade(old version)`` runs before the first change to a file that already held a version, while
    nobody else can write: the copy it makes is exactly what the upgrade starts from.
    """
    if version(connection) == len(migrations):
        return
    with immediate(connection):
        # another process, perhaps of a newer program, may have come first while this one waited for the lock
        verify(connection, migrations, path)
        current = version(connection)
        if 0 < current < len(migrations):
            before_upgrade(current)
        for migration in migrations[current:]:
            _apply(connection, migration, current, path, clock)


def _apply(connection: "Connection", migration: Migration, current: int, path: Path, clock: Clock) -> None:
    try:
        for statement in statements(migration.sql):
            connection.execute(statement)
    except pysqlite3.Error as exc:
        if getattr(exc, "sqlite_errorcode", 0) & 0xFF not in (0, pysqlite3.SQLITE_ERROR, pysqlite3.SQLITE_CONSTRAINT):
            raise  # the disk or the file, not the migration
        raise _failed(migration, current, path) from exc
    # foreign keys are not enforced while tables are rebuilt, so they are checked at the end
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise _failed(migration, current, path)
    connection.execute(
        "INSERT INTO migrations (number, name, sha256, applied_at) VALUES (?, ?, ?, ?)",
        (migration.number, migration.name, migration.sha256, clock().isoformat()),
    )
    connection.execute(f"PRAGMA user_version = {migration.number:d}")


def _failed(migration: Migration, current: int, path: Path) -> DatabaseError:
    return DatabaseError(
        f"{path} could not be upgraded by {migration.file_name}: it is still at version {current}, with "
        f"everything in it. Go on with the Olvido you had before, and report this."
    )


@contextmanager
def immediate(connection: "Connection") -> Iterator[None]:
    """A write transaction, for code that runs in the connection's own thread."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def inspect(connection: "Connection", path: Path, migrations: Sequence[Migration], *, check_up_to_bytes: int) -> None:
    """Raise unless the file is a sound memory, or empty; reads only, so that a file we cannot use stays as it is."""
    connection.execute("BEGIN")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if application != APPLICATION_ID and tables:
        raise DatabaseCorrupt(
            f"{path} is not a memory of Olvido but another program's SQLite file: nothing was changed. "
            f"Choose another file, or move this one away to start afresh."
        )
    verify(connection, migrations, path)
    unclean = "openings" in tables and bool(_dead(connection))
    if unclean or path.stat().st_size <= check_up_to_bytes:
        check(connection, path)


def check(connection: "Connection", path: Path) -> None:
    """SQLite's own check of every page, without comparing indexes with their tables."""
    if [tuple(row) for row in connection.execute("PRAGMA quick_check(1)")] != [("ok",)]:
        raise damaged(path)


def check_thoroughly(connection: "Connection", path: Path) -> None:
    """The same with every index and every reference between tables."""
    whole = [tuple(row) for row in connection.execute("PRAGMA integrity_check(1)")] == [("ok",)]
    if not whole or connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise damaged(path)


def damaged(path: Path) -> DatabaseCorrupt:
    """What to tell about a file that cannot be read as it should."""
    copies = _copies(path)
    restore = f"Put the newest copy, {copies[-1]}, in its place" if copies else "Put a copy of yours in its place"
    return DatabaseCorrupt(
        f"{path} is damaged, or is no memory of Olvido: nothing was changed. {restore}, or move the file away to "
        "start afresh."
    )


def was_emptied(path: Path) -> bool:
    """Whether an empty file once held something; one that is being made, or whose making was cut short, did not.

    SQLite would drop what waits in the WAL beside an empty file; a new one has its first page before it has a WAL.
    """
    wal = path.with_name(f"{path.name}-wal")
    with suppress(FileNotFoundError):
        if wal.stat().st_size > 0:
            return path.stat().st_size == 0
    return bool(_copies(path)) and path.stat().st_size == 0


def _copies(path: Path) -> list[Path]:
    """The copies made before upgrades and those made regularly, oldest first."""
    start = f"{path.stem}-"
    named = (path.parent / "backups").glob(f"{glob.escape(start)}*.db")
    dated = [(match[1], file) for file in named if (match := _COPY.fullmatch(file.name.removeprefix(start)))]
    return [file for _, file in sorted(dated)]


def register(connection: "Connection", token: str, clock: Clock) -> bool:
    """Note that this process has the file open; whether another one died with it open."""
    row = (token, os.getpid(), _boot(), _started(os.getpid()), clock().isoformat())
    with immediate(connection):
        dead = _dead(connection)
        connection.executemany("DELETE FROM openings WHERE token = ?", [(gone,) for gone in dead])
        connection.execute("INSERT INTO openings (token, pid, boot, started, opened_at) VALUES (?, ?, ?, ?, ?)", row)
    _HELD.add(token)
    return bool(dead)


def forget_opening(token: str) -> None:
    """This process no longer has that opening, whether or not its row could be deleted."""
    _HELD.discard(token)


def processes(connection: "Connection") -> list[int]:
    """The living processes that have the file open, but this one."""
    found = connection.execute("SELECT DISTINCT pid, boot, started FROM openings ORDER BY pid").fetchall()
    return [pid for pid, boot, started in found if pid != os.getpid() and _alive(pid, boot, started)]


def _dead(connection: "Connection") -> list[str]:
    rows = connection.execute("SELECT token, pid, boot, started FROM openings").fetchall()
    return [token for token, pid, boot, started in rows if token not in _HELD and not _alive(pid, boot, started)]


def _alive(pid: int, boot: str, started: str) -> bool:
    if pid == os.getpid() or boot != _boot():
        return False  # ours would be in _HELD
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists and is somebody else's
    return _started(pid) in (started, "")


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process began, in the kernel's ticks; "" where that is not to be had."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if fields[0] in "ZX" else fields[19]  # a zombie still answers to its id
