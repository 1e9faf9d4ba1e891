"""The engine: everything remembered and forgotten about one person. Start at `Memory`.

from memory import Memory

async with Memory.open("me.db") as memory:
    session = await memory.open_session(channel="repl", chat="me")
    turn = await memory.add_turn(session.id, role="user", content="I live in Lyon.")
    print(turn.learned)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory.engine import Memory

__all__ = ["Memory"]


def __getattr__(name: str) -> Any:
    """Loads the engine when it is first asked for, so that reading the limits costs nothing."""
    if name == "Memory":
        from memory.engine import Memory

        return Memory
    raise AttributeError(f"module 'memory' has no attribute {name!r}")
