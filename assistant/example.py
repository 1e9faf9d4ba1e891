"""The commented configuration file, rendered from the settings themselves."""

import json
from pathlib import Path

from assistant.settings import setting_keys
from assistant.sources import Key

HEADER = """\
# The settings of Olvido. As it is, this file means the defaults: remove the # before a key to change it.
# Every key can also be set in the environment: OLVIDO_OWNER, OLVIDO_MODEL__API_KEY (two underscores for the dot).
# See what is in force, and where it was set, with: olvido config show
"""


def render_example() -> str:
    """Every setting with its explanation and default, commented out."""
    lines = [HEADER]
    table = ""
    for key in setting_keys().values():
        parent, _, name = key.name.rpartition(".")
        if parent != table:
            lines.append(f"\n[{parent}]")
            table = parent
        lines += _entry(key, name)
    return "\n".join(lines) + "\n"


def _entry(key: Key, name: str) -> list[str]:
    explanation = key.description
    if key.choices:
        explanation += f" One of {', '.join(key.choices)}."
    if key.rule:
        explanation += f" Rule {key.rule}."
    if key.table:
        assert isinstance(key.example, dict)
        entries = [f"#{inner} = {_toml(value)}" for inner, value in key.example.items()]
        return ["", f"# {explanation}", f"[{key.name}]", *entries]
    if key.default is None:
        return [f"# {explanation} Not set by default.", f"#{name} = {_toml(key.example)}"]
    return [f"# {explanation}", f"#{name} = {_toml(key.default)}"]


def _toml(value: object) -> str:
    """A value as TOML writes it; for text and numbers that is JSON."""
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)
