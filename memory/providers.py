"""Calibration of the token estimate (B6): each answer's `usage` says how many tokens the model really made of it."""

from memory.context import Contexts
from memory.database import Database, Transaction
from memory.limits import Limits
from memory.ports import Clock
from memory.stores import providers as rows
from memory.values import ProviderScale


class Providers:
    """The scales of the models used so far, and the one in force."""

    def __init__(self, *, database: Database, contexts: Contexts, clock: Clock, limits: Limits) -> None:
        self._database = database
        self._contexts = contexts
        self._clock = clock
        self._limits = limits
        self._model: str | None = None
        self.held: dict[str, ProviderScale] = {}  # measured, and not written yet

    async def use(self, model: str) -> None:
        """Requests are measured for this model from now on."""
        self._model = model
        self._apply(self.held.get(model) or await rows.load(self._database, model))

    async def observe(self, model: str, estimated: int, used: int) -> None:
        """An answer of a model: it made `used` tokens of a request estimated at `estimated` with the scale in force."""
        if estimated <= 0 or used <= 0:
            return
        needed = self._contexts.factor * used / estimated * (1 + self._limits.provider_margin)
        known = self.held.get(model) or await rows.load(self._database, model)
        self.held[model] = updated(known, needed, self._limits)
        if model == self._model:
            self._apply(self.held[model])

    async def write(self, tx: Transaction) -> None:
        """Writes what was measured."""
        for model, scale in list(self.held.items()):
            await rows.save(tx, model, scale, self._clock())
            if self.held[model] is scale:
                del self.held[model]

    def _apply(self, scale: ProviderScale | None) -> None:
        default = self._limits.provider_factor
        self._contexts.factor = scale.factor if scale else default
        self._contexts.ceiling = max(default, scale.peak) if scale else default


def updated(scale: ProviderScale | None, needed: float, limits: Limits) -> ProviderScale:
    """Rises at once to what was needed, falls slowly towards it; what a faulty server reports is bounded."""
    needed = min(max(needed, limits.provider_factor / 4), limits.provider_factor * 4)
    before = scale.factor if scale else limits.provider_factor
    factor = max(needed, before + (needed - before) * limits.provider_fall)
    return ProviderScale(
        factor=factor,
        peak=max(needed, scale.peak if scale else 0.0),
        observations=(scale.observations if scale else 0) + 1,
    )
