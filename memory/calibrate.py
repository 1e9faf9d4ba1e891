"""Keeps the calibration of the embedding model in force: loaded from the file, fitted when it is not there."""

import logging
from collections.abc import Mapping

from memory.database import Database
from memory.embeddings import EmbeddedEmbedder
from memory.errors import EmbedderError
from memory.language import LanguagePack, detect
from memory.ports import Clock, Embedder
from memory.similarity import ANY, Calibration, calibrate, pairs_sha256
from memory.stores import calibrations
from memory.stores.index import Index

_LOG = logging.getLogger(__name__)
_embedded: dict[str, Calibration] = {}


async def _fitted(embedder: Embedder) -> Calibration:
    """The scale of a model; that of the embedded one is the same in every file, and fitted once per process."""
    if not isinstance(embedder, EmbeddedEmbedder):
        return await calibrate(embedder)
    if embedder.model not in _embedded:
        _embedded[embedder.model] = await calibrate(embedder)
    return _embedded[embedder.model]


class Calibrator:
    """The common scale of one memory."""

    def __init__(self, database: Database, index: Index, packs: Mapping[str, LanguagePack], clock: Clock) -> None:
        self._database = database
        self._index = index
        self._packs = packs
        self._clock = clock
        self._current: Calibration | None = None

    async def current(self) -> Calibration | None:
        """The scale of the model in force; None while that model fails, or is gone and not yet replaced."""
        model = await self._index.model()
        if self._current is None or self._current.model != model:
            self._current = await calibrations.load(self._database, model, pairs_sha256()) or await self.redo()
        return self._current

    async def redo(self) -> Calibration | None:
        """Fits the scale anew and keeps it."""
        embedder = self._index.embedder(await self._index.model())
        if embedder is None:
            return None
        try:
            fitted = await _fitted(embedder)
        except EmbedderError:
            _LOG.warning("similarities are not calibrated yet", exc_info=True)
            return None
        async with self._database.transaction() as tx:
            await calibrations.save(tx, fitted, self._clock())
        self._current = fitted
        return fitted

    async def similarity(self, first: str, second: str) -> float:
        """How alike two texts are, from 0 to 1, on the scale on which the design's thresholds hold."""
        if first == second:
            return 1.0
        a, b = await self._index.query_vector(first), await self._index.query_vector(second)
        scale = await self.current()
        if a is None or b is None or scale is None:
            return 0.0
        languages = {detect(first, None, self._packs), detect(second, None, self._packs)}
        return scale(float(a @ b), languages.pop() if len(languages) == 1 else ANY)
