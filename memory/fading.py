"""How statements fade (M2): by the days on which the assistant was used, so that a holiday erases nothing."""

from memory.database import Database
from memory.limits import Limits
from memory.stores import context as rows
from memory.stores import episodes as episode_rows
from memory.stores.index import Index


class Fading:
    """Counts what was read, and drops what nobody has read for long."""

    def __init__(self, *, database: Database, index: Index, limits: Limits) -> None:
        self._database = database
        self._index = index
        self._limits = limits

    async def run(self) -> int:
        """Does what is owed; returns how many statements were dropped."""
        if await rows.reads_to_count(self._database):
            async with self._database.transaction() as tx:
                await episode_rows.count_reads(tx)
                await rows.count_reads(tx)
        oldest = await rows.day_number(self._database) - self._limits.statement_unread_days
        if not await rows.unread_statements(self._database, oldest):
            return 0
        async with self._database.transaction() as tx:
            unread = await rows.unread_statements(tx, oldest)
            for statement in unread:
                await self._index.remove(tx, statement.kind, [statement.id])
            await rows.delete_statements(tx, unread)
        return len(unread)
