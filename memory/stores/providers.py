"""How many of its own tokens each model needs, as rows."""

from datetime import datetime

from memory.database import Database, Transaction, View
from memory.values import ProviderScale


async def load(reader: Database | View, model: str) -> ProviderScale | None:
    """What is known of a model; None before its first answer."""
    row = await reader.fetch_one("SELECT factor, peak, observations FROM providers WHERE model = ?", (model,))
    if row is None:
        return None
    return ProviderScale(factor=row["factor"], peak=row["peak"], observations=row["observations"])


async def save(tx: Transaction, model: str, scale: ProviderScale, at: datetime) -> None:
    """Keeps what is known of a model."""
    await tx.execute(
        "INSERT INTO providers (model, factor, peak, observations, updated_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (model) DO UPDATE SET factor = excluded.factor, peak = excluded.peak, "
        "observations = excluded.observations, updated_at = excluded.updated_at",
        (model, scale.factor, scale.peak, scale.observations, at.isoformat()),
    )
