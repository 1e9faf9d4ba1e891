"""A chat that may last for years, with any OpenAI-compatible server: no request grows beyond 4,000 tokens.

OPENAI_API_KEY=... python examples/bounded_chat.py gpt-4.1-mini
OPENAI_API_KEY=ollama OPENAI_BASE_URL=http://localhost:11434/v1 python examples/bounded_chat.py llama3.2
"""

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path

from openai import AsyncOpenAI

from memory import Memory


async def chat(memory: Memory, client: AsyncOpenAI, model: str, lines: Iterable[str]) -> None:
    """Answers every line; the request is assembled anew each time."""
    session = await memory.open_session()
    for line in lines:
        await memory.add_turn(session.id, "user", line.strip())
        context = await memory.assemble(session.id)
        answer = await client.chat.completions.create(model=model, messages=context.messages)  # type: ignore[arg-type]
        reply = answer.choices[0].message.content or ""
        await memory.add_turn(session.id, "assistant", reply)
        if answer.usage:  # the estimate learns what this model counts
            await memory.calibrate_provider(model, context.provider_tokens, answer.usage.prompt_tokens)
        print(f"{reply}\n({context.tokens} tokens sent)")
        await memory.run_pending()  # compresses what left the window; a program with an event loop does it beside


async def main(model: str, file: Path = Path("example.db")) -> None:
    """Talks on the terminal until the input ends."""
    async with Memory.open(file) as memory, AsyncOpenAI() as client:
        await chat(memory, client, model, sys.stdin)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the model: python examples/bounded_chat.py MODEL")
    asyncio.run(main(sys.argv[1]))
