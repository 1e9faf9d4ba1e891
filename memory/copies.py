"""Older copies of a person's file: what was forgotten is forgotten there too.

A copy is changed in place, checkpointed, and left as one file that needs no other beside it. Opening it makes no
copy of the copy, as opening a person's own file does before an upgrade: that would hold what is to go.
"""

import asyncio
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from memory import migrate
from memory.engine import Memory
from memory.language import fold
from memory.limits import Limits
from memory.ports import Clock, system_clock
from memory.stores import facts as rows
from memory.values import Fact


async def forget_in_copy(
    path: Path, texts: Iterable[str], *, clock: Clock = system_clock, limits: Limits | None = None
) -> list[Fact]:
    """Removes from a copy every fact that says one of these texts, with its chain; returns those that went."""
    limits = limits or Limits()
    await asyncio.to_thread(_upgrade, path, clock, limits)
    wanted = {_folded(text) for text in texts}
    gone: dict[str, Fact] = {}
    try:
        async with Memory.open(path, clock=clock, limits=limits) as memory:
            stored = await rows.all_with_status(memory.database, ("current", "superseded", "undone"))
            for fact in [fact for fact in stored if _folded(fact.fact) in wanted or _folded(fact.quote) in wanted]:
                if fact.id not in gone:
                    forgotten = await memory.facts.forget(fact.id)
                    gone |= {each.id: each for each in (fact, *forgotten.facts)}
            await memory.database.checkpoint()
    finally:
        await asyncio.to_thread(_make_single, path, limits)
    return list(gone.values())


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


def _folded(text: str) -> str:
    return " ".join(fold(text).split())
