"""A memory whose similarities are calibrated already, so that a test does not spend its time on that."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memory import Memory
from memory.testing import FakeClock

OpenMemory = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture(scope="session")
def calibrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty memory that knows the scale of the embedded embedder."""
    path = tmp_path_factory.mktemp("calibrated") / "person.db"

    async def make() -> None:
        async with Memory.open(path, clock=FakeClock()) as memory:
            await memory.calibrator.current()

    asyncio.run(make())
    return path


@pytest.fixture
def open_memory(calibrated_file: Path, tmp_path: Path) -> OpenMemory:
    """Opens a memory of its own in a new file; one that was there before when given its path."""
    numbers = count()

    @asynccontextmanager
    async def opened(clock: FakeClock | None = None, path: Path | None = None, **options: Any) -> AsyncIterator[Memory]:
        if path is None:
            path = tmp_path / f"person{next(numbers)}.db"
            shutil.copy(calibrated_file, path)
        async with Memory.open(path, clock=clock or FakeClock(), **options) as memory:
            yield memory

    return opened
