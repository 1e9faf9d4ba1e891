"""Inspecting a context: what a request holds, section by section, why each item is there, and what was left out.

python examples/inspect_context.py [FILE]
"""

import asyncio
import sys
from pathlib import Path

from memory import Memory
from memory.values import Context, Role

TALK: tuple[tuple[Role, str], ...] = (
    ("user", "I'm vegetarian, and I decided to cook at home from now on."),
    ("assistant", "Good plan. Shall we make a list for the week?"),
    ("user", "Yes, please. Marta is coming on Friday, and there is a new wok in the kitchen."),
    ("assistant", "Then something from the wok on Friday: tofu with green beans."),
    ("user", "Changing the subject: the bicycle needs new brakes."),
    ("assistant", "Are they rim or disc brakes?"),
    ("user", "Disc brakes. What could I cook for Marta?"),
)


def show(context: Context) -> None:
    """Prints a context as the engine reports it."""
    print(f"{context.tokens} tokens, about {context.provider_tokens} in the model's own count\n")
    for name, section in context.sections.items():
        print(f"{name:<10}{section.tokens:>6} tokens")
        for item in section.items:
            print(f"    {item.id:<6}{item.text}   [{item.why}]")
    for gone in context.left_out:
        print(f"left out  {gone.section} {gone.id}: {gone.why}")
    print("\nthe last message, as it is sent:\n\n" + context.messages[-1]["content"])


async def main(file: Path) -> None:
    """Holds a short talk and shows the request of its last message."""
    async with Memory.open(file) as memory:
        session = await memory.open_session()
        for role, text in TALK:
            await memory.add_turn(session.id, role, text)
            await memory.run_pending()
        show(await memory.assemble(session.id))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "example.db")))
