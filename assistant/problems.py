"""What last went wrong in a part of the daemon, and when: for the status."""

from dataclasses import dataclass, field
from datetime import datetime

from memory.ports import system_clock


@dataclass(frozen=True, slots=True)
class Problem:
    """It may be over: only the time tells."""

    text: str
    at: datetime = field(default_factory=system_clock)
