"""Shared by all tests."""

import pytest
from hypothesis import settings

# machines are shared and noisy: no example fails for being slow, and each run tries the same number
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


@pytest.hookimpl(trylast=True)  # after the order was made random
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take long come first in the half that each of two workers begins with: none is left for the end."""
    long = [item for item in items if item.get_closest_marker("long")]
    rest = [item for item in items if not item.get_closest_marker("long")]
    middle = len(rest) // 2
    items[:] = [*long[::2], *rest[:middle], *long[1::2], *rest[middle:]]
