"""Compiled patterns are kept beside their pack, and nothing depends on the file."""

import re
import sys
from pathlib import Path

import pytest

from memory.patterns import Patterns, parsed

TEXTS = [rf"(?P<name>word{number})|(?:a{number}|b)+?(?!c)\b" for number in range(40)]


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "xx.toml"


def kept(pack: Path) -> Path:
    (file,) = (pack.parent / "__pycache__").iterdir()
    return file


def assert_same(pattern: "re.Pattern[str]", text: str) -> None:
    whole = re.compile(text)
    assert (pattern.pattern, pattern.flags, pattern.groups, pattern.groupindex) == (
        whole.pattern,
        whole.flags,
        whole.groups,
        whole.groupindex,
    )
    for said in ("word7 and a7b", "aab c", "b", "", "word39", "a1a1bb"):
        assert [match.groupdict() for match in pattern.finditer(said)] == [m.groupdict() for m in whole.finditer(said)]


def test_a_pattern_read_back_is_the_pattern(pack: Path) -> None:
    first = Patterns(pack)
    for text in TEXTS:
        assert_same(first.compile(text), text)
    first.save()
    assert kept(pack).stat().st_size > 1000
    again = Patterns(pack)
    for text in TEXTS:
        assert_same(again.compile(text), text)
    assert again._new == 0


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_no_harm(pack: Path, damage: bytes | None) -> None:
    first = Patterns(pack)
    for text in TEXTS:
        first.compile(text)
    first.save()
    file = kept(pack)
    file.write_bytes(file.read_bytes()[:-50] if damage is None else damage)
    for text in TEXTS:
        assert_same(Patterns(pack).compile(text), text)


def test_a_bad_pattern_is_an_error_as_ever(pack: Path) -> None:
    with pytest.raises(re.error):
        Patterns(pack).compile("(")


def test_nothing_is_written_where_nothing_may_be(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    patterns = Patterns(pack)
    for text in TEXTS:
        patterns.compile(text)
    patterns.save()
    assert not (pack.parent / "__pycache__").exists()


def test_a_pack_read_back_is_the_pack_until_its_words_change(pack: Path) -> None:
    pack.write_text('name = "x"\n[words]\nfiller = ["eh", "mm"]\n')
    assert parsed(pack) == parsed(pack) == {"name": "x", "words": {"filler": ["eh", "mm"]}}
    assert kept(pack).stat().st_size > 0
    pack.write_text('name = "y"\n')
    assert parsed(pack) == {"name": "y"}
    kept(pack).write_bytes(b"nonsense")
    assert parsed(pack) == {"name": "y"}
    pack.write_text("at = 2026-01-01\n")
    assert parsed(pack) == parsed(pack)


def test_patterns_are_kept_before_the_process_ends(pack: Path) -> None:
    first, other = Patterns(pack), Patterns(pack)
    for text in TEXTS:
        first.compile(text)
    other.compile(TEXTS[0])
    assert other._new == 0
