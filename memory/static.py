"""The static system prompt (B4): four blocks from files, compiled and hashed, identical bytes every time."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from memory.errors import EngineError
from memory.tokens import count_tokens

# file, most tokens it may have
BLOCKS = (("1_identity.md", 80), ("2_capabilities.md", 120), ("3_rules.md", 100), ("4_format.md", 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticPrompt:
    """The compiled prompt and the hash that is its version."""

    text: str
    sha256: str


@cache
def shipped_prompt() -> StaticPrompt:
    """The prompt that comes with Olvido."""
    return load_prompt(None)


def load_prompt(folder: Path | None) -> StaticPrompt:
    """The four blocks; a file of the same name in the user's folder takes the place of a shipped one."""
    shipped = resources.files("prompts").joinpath("system")
    blocks = []
    for name, limit in BLOCKS:
        own = folder is not None and (folder / name).is_file()
        file: Any = folder / name if folder is not None and own else shipped.joinpath(name)
        try:
            text = file.read_text("utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as exc:
            raise EngineError(f"The prompt block {file} cannot be read: it must be a text file in UTF-8.") from exc
        if own and not 0 < (tokens := count_tokens(text)) <= limit:  # of the shipped ones a test knows
            raise EngineError(f"The prompt block {file} has {tokens} tokens; it must have 1 to {limit}. Shorten it.")
        blocks.append(text)
    compiled = "\n\n".join(blocks)
    return StaticPrompt(text=compiled, sha256=hashlib.sha256(compiled.encode()).hexdigest())
