"""Shared by all tests."""

from hypothesis import settings

# machines are shared and noisy: no example fails for being slow, and each run tries the same number
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")
