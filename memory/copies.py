"""Copies of a person's file: made, checked, brought back; what was forgotten is forgotten there too.

A copy is changed in place, checkpointed, and left as one file that needs no other beside it. Opening it makes no
copy of the copy, as opening a person's own file does before an upgrade: that would hold what is to go.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from memory import migrate
from memory.database import Database
from memory.engine import Memory
from memory.errors import DatabaseBusy, NotFound
from memory.learn import normalised
from memory.limits import Limits
from memory.ports import Clock, system_clock
from memory.stores import episodes as episode_rows
from memory.stores import facts as rows
from memory.stores import inbox as inbox_rows
from memory.values import Fact, Span


async def forget_in_copy(
    path: Path,
    said: Sequence[Fact],
    spans: Sequence[Span] = (),
    *,
    clock: Clock = system_clock,
    limits: Limits | None = None,
) -> Sequence[Fact]:
    """Removes from a copy what these facts say, learnt there or not, and episodes of these turns; the facts gone."""
    limits = limits or Limits()
    await asyncio.to_thread(_upgrade, path, clock, limits)
    try:
        async with Memory.open(path, clock=clock, limits=limits) as memory:
            gone = await memory.facts.forget_again(said)
            if spans:
                await memory.episodes.forget_again(spans)
            await memory.database.checkpoint()
    finally:
        await asyncio.to_thread(_make_single, path, limits)
    return gone.facts


def make_copy(source: Path, to: Path, *, limits: Limits) -> None:
    """A copy of one consistent state, checked to the last index before it counts; others may go on writing."""
    if not holds_memory(source, limits=limits):
        raise DatabaseBusy(f"{source} is being made just now: nothing was copied. Try again in a moment.")
    migrate.copy(source, to, limits)
    try:
        with migrate.translated(to), closing(migrate.connect(to, "ro", limits)) as connection:
            migrate.check_thoroughly(connection, to)
    except BaseException:
        to.unlink(missing_ok=True)
        raise


def holds_memory(path: Path, *, limits: Limits) -> bool:
    """Whether a file is a memory already; one that is being made is none yet."""
    with migrate.translated(path), closing(migrate.connect(path, "ro", limits)) as connection:
        return migrate.version(connection) > 0


def check_file(path: Path, *, limits: Limits) -> None:
    """Raises unless a file is a sound memory that this program can read; changes nothing."""
    with migrate.translated(path), closing(migrate.connect(path, "ro", limits)) as connection:
        migrate.inspect(connection, path, migrate.load(), check_up_to_bytes=0)
        migrate.check_thoroughly(connection, path)


def processes_using(path: Path, *, limits: Limits) -> list[int]:
    """The processes that have a memory open now, but this one."""
    if not path.is_file():
        return []
    with migrate.translated(path), closing(migrate.connect(path, "ro", limits)) as connection:
        return migrate.processes(connection)


async def prepare_restore(
    copy: Path, current: Path | None, *, clock: Clock = system_clock, limits: Limits | None = None
) -> None:
    """Brings into a copy what must not be undone by going back to it: what was forgotten, and answered, since then.

    Without a current file that can be read nobody knows what was answered: nothing that waits in the copy will be.
    """
    limits = limits or Limits()
    await asyncio.to_thread(_upgrade, copy, clock, limits)
    graves: rows.Tombstones | None = None
    journal: list[dict[str, object]] | None = None
    spans: list[Span] = []
    if current is not None:
        async with Database.open(current, clock=clock, limits=limits) as database:
            graves = await rows.tombstones(database)
            journal = await inbox_rows.everything(database)
            spans = await episode_rows.buried(database)
    try:
        async with Memory.open(copy, clock=clock, limits=limits) as memory:
            async with memory.database.transaction() as tx:
                if journal is not None:
                    await inbox_rows.replace_all(tx, journal)
                else:
                    await inbox_rows.give_up_waiting(tx, clock())
                if graves is not None:
                    await rows.set_tombstones(tx, graves)
            await _forget_buried(memory)
            await memory.episodes.forget_again(spans)
            await memory.database.checkpoint()
    finally:
        await asyncio.to_thread(_make_single, copy, limits)


async def _forget_buried(memory: Memory) -> None:
    stored = await rows.all_with_status(memory.database, ("current", "superseded", "undone"))
    async with memory.database.transaction() as tx:
        buried = [
            fact for fact in stored if await rows.is_buried(tx, normalised(fact.fact, memory.packs.get(fact.language)))
        ]
    for fact in buried:
        with suppress(NotFound):  # went with the one before, of whose chain it was
            await memory.facts.forget(fact.id)


def _upgrade(path: Path, clock: Clock, limits: Limits) -> None:
    migrations = migrate.load()
    with migrate.translated(path), closing(migrate.connect(path, "rw", limits)) as connection:
        migrate.inspect(connection, path, migrations, check_up_to_bytes=limits.check_on_open_bytes)
        connection.execute("COMMIT")
        connection.execute("PRAGMA secure_delete = ON")  # deleted means overwritten, also by an upgrade
        migrate.migrate(connection, migrations, path=path, clock=clock, before_upgrade=lambda _: None)


def _make_single(path: Path, limits: Limits) -> None:
    with migrate.translated(path), closing(migrate.connect(path, "rw", limits)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
