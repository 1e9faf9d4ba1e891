"""What the engine needs from outside, as Protocols; each has a default that needs no network."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    Vectors = Any  # numpy is imported where vectors are made: looking at facts does without it


class Clock(Protocol):
    """The only way the engine learns the time."""

    def __call__(self) -> datetime:
        """Now, as an aware UTC datetime."""


class Embedder(Protocol):
    """Turns texts into vectors; called off the event loop or awaited, never inside a transaction."""

    @property
    def model(self) -> str:
        """Names the model; vectors of different models are never compared."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of unit length per text."""


class TokenCounter(Protocol):
    """Counts tokens without touching the network."""

    def __call__(self, text: str) -> int:
        """The number of tokens of a text."""


def system_clock() -> datetime:
    """The default clock."""
    return datetime.now(UTC)
