"""One person's SQLite file: opening it safely, and the only ways to read and write it.

Two connections: a writer behind one lock, because with one connection another task's commit would commit half of
yours, and a reader that never waits for the writer. Each runs in its own thread (aiosqlite).
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

import aiosqlite
import pysqlite3

from memory import migrate
from memory.errors import DatabaseBusy, DatabaseError, DatabaseGone, DatabaseReadOnly
from memory.limits import Limits
from memory.migrate import Migration, Mode, connect, copy, kind_of, translate, translated
from memory.ports import Clock, system_clock

if TYPE_CHECKING:  # pysqlite3 carries no types; its classes have the shape of the standard library's
    from sqlite3 import Connection, Row
else:
    from pysqlite3 import Connection, Row

Parameters = Sequence[Any] | Mapping[str, Any]
T = TypeVar("T")
V = TypeVar("V", bound="View")

__all__ = ["Database", "Parameters", "Row", "Transaction", "View", "Written", "forbid_in_transaction", "translate"]

_LIMITS = Limits()
_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opening:
    """What it takes to open a file; the methods block, in the thread of the connection they make."""

    path: Path
    clock: Clock
    limits: Limits
    migrations: tuple[Migration, ...]
    token: str

    def writer(self) -> tuple[Connection, bool]:
        """The connection that writes, to a file that is sound and up to date; whether the last stop was unclean."""
        with translated(self.path):
            migrate.prepare_place(self.path)
            give_up = time.monotonic() + self.limits.busy_timeout_ms / 1000
            while True:
                try:
                    return self._attempt()
                except pysqlite3.Error as exc:
                    # of two processes that switch a new file to WAL at once SQLite fails one without waiting
                    if kind_of(exc, self.path) is not DatabaseBusy or time.monotonic() > give_up:
                        raise
                time.sleep(_RETRY_SECONDS)

    def reader(self) -> Connection:
        """The connection that reads."""
        with translated(self.path):
            connection = connect(self.path, "rw", self.limits)
            connection.row_factory = Row
            connection.execute("PRAGMA query_only = ON")
            return connection

    def _attempt(self) -> tuple[Connection, bool]:
        if self.path.exists():
            if self.path.stat().st_size > 0:
                self._inspect()
            elif migrate.was_emptied(self.path):
                raise migrate.damaged(self.path)
        connection = connect(self.path, "rwc", self.limits)
        try:
            with suppress(PermissionError):  # somebody else's file that we may write
                self.path.chmod(0o600)
            return connection, self._make_ready(connection)
        except BaseException:
            connection.close()
            raise

    def _inspect(self) -> None:
        """Through a read-only connection, whose closing cannot move the WAL into a file that may be damaged."""
        size = self.limits.check_on_open_bytes
        modes: tuple[Mode, ...] = ("ro", "rw")
        for mode in modes:
            with closing(connect(self.path, mode, self.limits)) as connection:
                try:
                    return migrate.inspect(connection, self.path, self.migrations, check_up_to_bytes=size)
                except pysqlite3.Error as exc:
                    if getattr(exc, "sqlite_errorcode", 0) == pysqlite3.SQLITE_ERROR:  # an impossible header
                        raise migrate.damaged(self.path) from exc
                    if mode == "rw" or kind_of(exc, self.path) is not DatabaseReadOnly:
                        raise
                    # a rollback journal waits, which only a connection that may write can put back
        return None

    def _make_ready(self, connection: Connection) -> bool:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # acknowledged means durable
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA secure_delete = ON")  # deleted means overwritten
        migrate.migrate(
            connection, self.migrations, path=self.path, clock=self.clock, before_upgrade=self._copy_before_upgrade
        )
        connection.execute("PRAGMA foreign_keys = ON")
        recovered = migrate.register(connection, self.token, self.clock)
        connection.row_factory = Row
        return recovered

    def _copy_before_upgrade(self, version: int) -> None:
        name = f"{self.path.stem}-v{version}-{self.clock():%Y%m%dT%H%M%SZ}.db"
        copy(self.path, self.path.parent / "backups" / name, self.limits)


class View:
    """Reads of one consistent state; rows allow access by name and by position."""

    def __init__(self, connection: aiosqlite.Connection, database: "Database") -> None:
        self._connection = connection
        self._database = database
        self._ended = False

    async def fetch_all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row."""
        with self._usable():
            return list(await self._connection.execute_fetchall(sql, parameters))

    async def fetch_one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row, or None."""
        rows = await self.fetch_all(sql, parameters)
        return rows[0] if rows else None

    async def fetch_value(self, sql: str, parameters: Parameters = ()) -> Any:
        """The first column of the first row, or None."""
        row = await self.fetch_one(sql, parameters)
        return None if row is None else row[0]

    @contextmanager
    def _usable(self) -> Iterator[None]:
        if self._ended:
            raise RuntimeError("this transaction or snapshot is over")
        try:
            with translated(self._database.path):
                yield
        except DatabaseReadOnly as exc:
            if type(self) is View and getattr(exc.__cause__, "sqlite_errorcode", 0) == pysqlite3.SQLITE_READONLY:
                raise RuntimeError("only a transaction may write") from exc
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one statement did."""

    lastrowid: int
    rowcount: int


class Transaction(View):
    """Reads and writes that happen together or not at all."""

    _failure: Exception | None = None

    async def execute(self, sql: str, parameters: Parameters = ()) -> Written:
        """Run one statement."""
        with self._usable():
            async with self._connection.execute(sql, parameters) as cursor:
                return Written(lastrowid=cursor.lastrowid or 0, rowcount=cursor.rowcount)

    async def execute_many(self, sql: str, rows: Iterable[Parameters]) -> Written:
        """Run one statement for each row."""
        with self._usable():
            async with self._connection.executemany(sql, rows) as cursor:
                return Written(lastrowid=cursor.lastrowid or 0, rowcount=cursor.rowcount)

    def raise_if_spoiled(self) -> None:
        """Raise what went wrong earlier, even if it was caught: the whole is undone, and no part may run alone."""
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def _usable(self) -> Iterator[None]:
        self.raise_if_spoiled()
        try:
            with super()._usable():
                yield
        except asyncio.CancelledError:
            self._failure = RuntimeError("a statement was cancelled, so nobody knows whether it ran: all is undone")
            raise
        except (pysqlite3.Error, DatabaseError) as exc:
            # SQLite undoes everything by itself when the disk is full, or a statement says so
            if isinstance(exc, DatabaseError) or not self._connection.in_transaction:
                self._failure = exc
            raise


# The transactions and snapshots this task is in. Tasks started inside one inherit it, as asyncio.wait_for and gather
# start them: their reads belong to it, and their waiting for the lock it holds would never end.
_OPEN: ContextVar[tuple[View, ...]] = ContextVar("open_views", default=())


def forbid_in_transaction(what: str) -> None:
    """Raise when called inside a transaction: everybody's writes would wait for ``what``."""
    if any(isinstance(view, Transaction) and not view._ended for view in _OPEN.get()):
        raise RuntimeError(f"{what} inside a transaction: every other write would wait for it")


def _open(connection: aiosqlite.Connection | None) -> aiosqlite.Connection:
    if connection is None:
        raise RuntimeError("the database is closed")
    return connection


async def _run(connection: aiosqlite.Connection, sql: str, parameters: Parameters = ()) -> list[Row]:
    return list(await connection.execute_fetchall(sql, parameters))


async def _start(connector: Callable[[], Connection]) -> aiosqlite.Connection:
    connection = aiosqlite.Connection(connector, iter_chunk_size=64)
    connection._thread.daemon = True  # a connection somebody forgot to close does not keep the process alive
    try:
        return await connection
    except BaseException:
        connection._thread.join()  # at its end already; later it might report to a loop that is closed
        raise


async def _finish(work: Coroutine[Any, Any, T]) -> T:
    """Await to the end even when cancelled meanwhile, and only then let the cancellation through."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        if not task.cancelled() and (error := task.exception()):
            _LOG.warning("failed while being cancelled", exc_info=error)
        raise cancelled
    return task.result()


class Database:
    """One person's file, open."""

    def __init__(self, opening: _Opening) -> None:
        self.path = opening.path
        self.recovered = False  # whether a process died with the file open; it was checked then, and is sound
        self._opening = opening
        self._writer: aiosqlite.Connection | None = None
        self._reader: aiosqlite.Connection | None = None
        self._writing = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._file: os.stat_result | None = None  # which one it is, whatever lies under its name later

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        path: Path | str,
        *,
        clock: Clock = system_clock,
        limits: Limits = _LIMITS,
        migrations: Traversable = migrate.SHIPPED,
    ) -> AsyncIterator[Self]:
        """Open a file, creating or upgrading it; one that cannot be used is left as it is and an error raised."""
        token = uuid4().hex
        opening = _Opening(
            path=Path(path), clock=clock, limits=limits, migrations=migrate.load(migrations), token=token
        )
        database = cls(opening)
        try:
            await _finish(database._connect())
            yield database
        finally:
            await _finish(database._close())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Write: committed when the block ends, undone when it raises or is cancelled; waits for other writers."""
        if isinstance(self._current(), Transaction):
            raise RuntimeError("a transaction inside a transaction of the same file would wait for itself")
        async with (
            self._writing,
            self._within(Transaction(_open(self._writer), self), "BEGIN IMMEDIATE") as transaction,
        ):
            yield transaction

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[View]:
        """Several reads of one state; inside a transaction or another snapshot, of that one's."""
        if view := self._current():
            yield view
            return
        async with self._reading, self._within(View(_open(self._reader), self), "BEGIN") as view:
            await view.fetch_all("SELECT 1 FROM sqlite_master LIMIT 1")  # a state is chosen by the first read
            yield view

    async def fetch_all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row; inside a transaction or snapshot, as that sees it."""
        if view := self._current():
            return await view.fetch_all(sql, parameters)
        async with self._reading:
            return await View(_open(self._reader), self).fetch_all(sql, parameters)

    async def fetch_one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row, or None."""
        rows = await self.fetch_all(sql, parameters)
        return rows[0] if rows else None

    async def fetch_value(self, sql: str, parameters: Parameters = ()) -> Any:
        """The first column of the first row, or None."""
        row = await self.fetch_one(sql, parameters)
        return None if row is None else row[0]

    async def checkpoint(self) -> bool:
        """Move the write-ahead log into the file and empty it; False when a reader kept part of it."""
        if self._current():
            raise RuntimeError("a checkpoint inside a transaction or snapshot would wait for itself")
        async with self._writing:
            with translated(self.path):
                rows = await _run(_open(self._writer), "PRAGMA wal_checkpoint(TRUNCATE)")
        return bool(rows[0][0] == 0)

    async def backup(self, to: Path) -> None:
        """Copy the file as it is now, checked and on the disk before it has its name; others may go on writing."""
        forbid_in_transaction("a backup")
        await asyncio.to_thread(copy, self.path, to, self._opening.limits)

    def _check_it_is_there(self) -> None:
        """SQLite would go on writing into a deleted file, and all of it would be lost with the last connection."""
        try:
            there = self._file is None or os.path.samestat(self._file, self.path.stat())
        except OSError:
            there = False
        if not there:
            raise DatabaseGone(
                f"{self.path} was deleted, moved or replaced while it was in use: nothing more is written. "
                "Put the file back, or bring back a copy with: olvido restore"
            )

    def _current(self) -> View | None:
        """The innermost transaction or snapshot of this file that this task is in."""
        return next((view for view in reversed(_OPEN.get()) if view._database is self and not view._ended), None)

    @asynccontextmanager
    async def _within(self, view: V, begin: str) -> AsyncIterator[V]:
        connection, outer, whole = view._connection, _OPEN.get(), False
        try:
            with translated(self.path):
                await _run(connection, begin)
            _OPEN.set((*outer, view))
            yield view
            if isinstance(view, Transaction):
                view.raise_if_spoiled()
                self._check_it_is_there()
            with translated(self.path):
                await _run(connection, "COMMIT")
            whole = True
        finally:
            view._ended = True
            _OPEN.set(outer)
            if not whole:
                await _finish(self._roll_back(connection))

    async def _roll_back(self, connection: aiosqlite.Connection) -> None:
        try:
            # behind what was cancelled and still runs in the thread; to ask before whether there is anything to undo
            # would block the event loop until then
            await _run(connection, "ROLLBACK")
        except pysqlite3.OperationalError as exc:
            if getattr(exc, "sqlite_errorcode", 0) != pysqlite3.SQLITE_ERROR:  # nothing to undo
                _LOG.warning("undoing a transaction in %s", self.path, exc_info=True)

    async def _connect(self) -> None:
        def writer() -> Connection:
            connection, self.recovered = self._opening.writer()
            return connection

        self._writer = await _start(writer)
        self._reader = await _start(self._opening.reader)
        with translated(self.path):
            self._file = self.path.stat()
        if self.recovered:
            _LOG.info("%s was not closed the last time; it was checked and is sound", self.path)

    async def _close(self) -> None:
        async with self._writing, self._reading:
            writer, reader = self._writer, self._reader
            self._writer = self._reader = None
        try:
            if reader is not None:
                await reader.close()
        finally:
            if writer is not None:
                await self._close_writer(writer)

    async def _close_writer(self, writer: aiosqlite.Connection) -> None:
        token = self._opening.token
        try:
            await _run(writer, "DELETE FROM openings WHERE token = ?", (token,))
        except pysqlite3.Error:  # the next opening takes this for an unclean stop and checks the file: no harm
            _LOG.warning("closing %s", self.path, exc_info=True)
        finally:
            migrate.forget_opening(token)
            await writer.close()
