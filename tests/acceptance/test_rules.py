"""docs/rules.md is complete and true: every rule is there, and what it names exists."""

import ast
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from assistant.settings import setting_keys
from memory.limits import Limits

ROOT = Path(__file__).parents[2]
RULES = [
    f"{letter}{number}"
    for letter, count in {
        "F": 13, "W": 4, "S": 5, "T": 2, "B": 7, "C": 4, "D": 1, "O": 1, "L": 3, "M": 3, "E": 5,
    }.items()
    for number in range(1, count + 1)
]  # fmt: skip
SECTIONS = ("2", "3", "5", "6")
ROWS = [
    [cell.strip() for cell in line.strip("| \n").split(" | ")]
    for line in (ROOT / "docs" / "rules.md").read_text("utf-8").splitlines()
    if re.match(r"\| [A-Z]?\d", line)
]
NAMED = sorted({name for row in ROWS for cell in row[2:] for name in re.findall(r"`([^`]+)`", cell)})


@cache
def defined(file: Path) -> set[str]:
    """The functions, classes and values a module defines, and the tests among them."""
    found: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_every_rule_has_one_row_in_order_and_every_section_is_there() -> None:
    assert [row[0] for row in ROWS if row[0] in RULES] == RULES
    assert {row[0] for row in ROWS} == {*RULES, *SECTIONS}


def test_every_row_says_what_where_and_why_to_believe_it() -> None:
    for rule, words, home, proof in ROWS:
        assert len(words) > 20, rule
        assert re.search(r"`(memory|assistant)/", home), rule
        assert "`tests/" in proof, rule


@pytest.mark.parametrize("name", NAMED)
def test_what_a_row_names_exists(name: str) -> None:
    path, _, inside = name.replace("::", ":").partition(":")
    assert (ROOT / path).is_file()
    if inside:
        assert inside in defined(ROOT / path)


def test_every_rule_a_setting_names_is_in_the_table() -> None:
    used = {limit.metadata["rule"] for limit in fields(Limits)}
    used |= {key.rule for key in setting_keys().values() if key.rule}
    assert used <= {row[0] for row in ROWS}
