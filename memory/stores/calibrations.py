"""The fitted maps of embedding models, as rows."""

from datetime import datetime

from memory.database import Database, Transaction
from memory.similarity import Calibration, Cuts


async def load(database: Database, model: str, pairs_sha256: str) -> Calibration | None:
    """The map of a model, unless it was fitted on other pairs."""
    rows = await database.fetch_all(
        "SELECT * FROM calibrations WHERE model = ? AND pairs_sha256 = ?", (model, pairs_sha256)
    )
    if not rows:
        return None
    cuts = {row["language"]: Cuts(unrelated=row["unrelated"], low=row["low"], high=row["high"]) for row in rows}
    return Calibration(model=model, pairs_sha256=pairs_sha256, cuts=cuts)


async def save(tx: Transaction, calibration: Calibration, at: datetime) -> None:
    """Keeps the map of a model, in place of an older one."""
    await tx.execute("DELETE FROM calibrations WHERE model = ?", (calibration.model,))
    await tx.execute_many(
        "INSERT INTO calibrations (model, language, unrelated, low, high, pairs_sha256, fitted_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (calibration.model, language, cuts.unrelated, cuts.low, cuts.high, calibration.pairs_sha256, at.isoformat())
            for language, cuts in calibration.cuts.items()
        ],
    )


async def fitted_at(database: Database, model: str) -> datetime | None:
    """When the map of a model was fitted."""
    value = await database.fetch_value("SELECT max(fitted_at) FROM calibrations WHERE model = ?", (model,))
    return datetime.fromisoformat(value) if value else None
