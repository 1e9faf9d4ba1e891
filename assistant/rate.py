"""How often a chat may send: so many messages a minute, after a pause as many at once."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

MINUTE = 60.0
MOST_KNOWN = 10_000  # chats; one that was not heard of for longest starts afresh


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float
    refused: bool = False


class Rate:
    """A bucket a chat, filled steadily; time is the machine's uptime, which never jumps."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = float(per_minute)
        self._clock = clock
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()

    def wait_seconds(self, key: Hashable) -> float | None:
        """Counts a message; None when it is welcome, else how long to wait for the next."""
        now = self._clock()
        bucket = self._buckets.pop(key, None) or _Bucket(self._most, now)
        self._buckets[key] = bucket
        if len(self._buckets) > MOST_KNOWN:
            self._buckets.popitem(last=False)
        bucket.left = min(self._most, bucket.left + (now - bucket.at) * self._most / MINUTE)
        bucket.at = now
        if bucket.left < 1:
            return (1 - bucket.left) * MINUTE / self._most
        bucket.left -= 1
        return None

    def welcome(self, key: Hashable) -> None:
        """A message was taken: the next one that is refused is the first again."""
        self._buckets[key].refused = False

    def first_refusal(self, key: Hashable) -> bool:
        """Whether this is the first message refused in a row; the others are not worth a word each."""
        bucket = self._buckets[key]
        first, bucket.refused = not bucket.refused, True
        return first
