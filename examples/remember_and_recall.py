"""Remember and recall: what is said today is found again, as a fact and as a dated line.

python examples/remember_and_recall.py [FILE]
"""

import asyncio
import sys
from pathlib import Path

from memory import Memory

SAID = (
    "I live in Lyon.",
    "I work in fintech, team of 5.",
    "Yesterday the plumber finally came: the valve under the sink was broken, and the repair cost 85 euros.",
    "Marta left her bicycle in our cellar until the end of March.",
    "Remember that I'm allergic to peanuts.",
    "I moved to Rome.",
)


async def main(file: Path) -> None:
    """Says a few things, and asks about them."""
    async with Memory.open(file) as memory:
        session = await memory.open_session()
        for text in SAID:
            turn = await memory.add_turn(session.id, "user", text)
            for fact in turn.learned:
                print(f"learned {fact.id}: {fact.fact}")
        await memory.open_session()  # the talk is over: what was said becomes statements and a summary
        await memory.run_pending()

        print("\nknown now:")
        for fact in await memory.facts.list():
            print(f"  {fact.id}  {fact.fact}")
        for question in ("What did the repair of the sink cost?", "Where is the bicycle of Marta?"):
            print(f"\n{question}")
            for hit in await memory.recall(question, k=2):
                print(f"  {hit.at:%Y-%m-%d}  {hit.kind:<10}  {hit.text}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "example.db")))
