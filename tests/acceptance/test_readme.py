"""The README: its table is what bench/results.json renders to, and no other measured number stands in it."""

import json
import re
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

from bench.__main__ import RESULTS, bound, portable, programs
from bench.claims import BEGIN, CLAIMS, END, README, into_readme, rows
from memory.limits import Limits

ROOT = Path(__file__).parents[2]
TEXT = README.read_text("utf-8")
STORED = json.loads(RESULTS.read_text("utf-8"))
# what is said of time, turns and sizes is a limit with a rule; the rest are versions and hours logs live
ALLOWED = {f"{limit.default:,}" for limit in fields(Limits)} | {"1", "1,000", "3.11", "3.12", "3.13", "24"}


def test_the_table_is_what_the_stored_results_render_to() -> None:
    assert into_readme(TEXT, STORED) == TEXT, "renew it with: make bench"


def test_every_program_has_a_result_and_every_claim_a_program() -> None:
    assert set(STORED) == set(programs())
    assert not [name for name, result in STORED.items() if "failed" in result]
    assert {claim.program for claim in CLAIMS} <= set(programs())
    assert len(rows(STORED)) == len(CLAIMS), "no claim without a figure"


@pytest.mark.parametrize("name", sorted(STORED))
def test_stored_results_depend_on_no_machine(name: str) -> None:
    """Neither a time nor a size of memory: counts, shares, and bounds of ratios."""
    result = STORED[name]
    assert "seconds" not in result
    for figure in result.get("figures", {}):
        assert not re.search(r"\bms$|seconds|_mb\b|\bMB\b|per_second", figure)
    assert all(value == bound(value) for value in result.get("at most", {}).values())


@pytest.mark.parametrize("name", programs())
def test_every_program_takes_full_and_says_what_that_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = import_module(f"bench.{name}")
    with pytest.raises(SystemExit) as ended:
        module.main(["--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert re.search(r"--full\s+\S", shown)
    assert "--json" in shown


def test_what_varies_is_left_out_and_ratios_become_bounds() -> None:
    figures = {"olvido --help, times the interpreter": 7.2, "olvido --help, heavy imports": 0}
    assert portable("startup", {"figures": figures, "seconds": 9.1}) == {
        "figures": {"olvido --help, heavy imports": 0},
        "at most": {"olvido --help, times the interpreter": 10},
    }
    assert [bound(ratio) for ratio in (0.2, 1.5, 1.51, 99, 123_456)] == [1.5, 1.5, 2, 100, 123_456]


def test_no_other_measured_number_stands_in_the_readme() -> None:
    prose = TEXT.partition(BEGIN)[0] + TEXT.partition(END)[2]
    prose = re.sub(r"```.*?```|`[^`]*`|<picture>.*?</picture>|\]\([^)]*\)", "", prose, flags=re.DOTALL)
    assert not re.search(r"\d\s?(%|ms\b|MB\b|GB\b|times\b|x\b|per cent|seconds?\b)", prose)
    numbers = set(re.findall(r"(?<![\w-])(?:\d[\d,.]*\d|\d)", prose))
    assert numbers <= ALLOWED, numbers - ALLOWED


def test_it_is_short_and_what_it_links_to_exists() -> None:
    assert len(TEXT.splitlines()) <= 150
    for link in re.findall(r"\]\(([^)]+)\)|(?:src|srcset)=\"([^\"]+)\"", TEXT):
        assert (ROOT / (link[0] or link[1])).exists(), link
