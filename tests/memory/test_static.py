"""The static prompt (B4): four blocks within their limits, the same bytes every time, versioned by their hash."""

import hashlib
from importlib import resources
from pathlib import Path

import pytest

from memory import Memory
from memory.errors import EngineError
from memory.static import BLOCKS, load_prompt, shipped_prompt
from memory.testing import FakeClock
from memory.tokens import count_tokens


def test_b4_the_four_shipped_blocks_keep_to_80_120_100_and_100_tokens() -> None:
    assert [limit for _, limit in BLOCKS] == [80, 120, 100, 100]
    folder = resources.files("prompts").joinpath("system")
    for name, limit in BLOCKS:
        assert 0 < count_tokens(folder.joinpath(name).read_text("utf-8").strip()) <= limit
    assert sorted(file.name for file in folder.iterdir() if file.name.endswith(".md")) == [name for name, _ in BLOCKS]
    assert count_tokens(shipped_prompt().text) <= 400


def test_b4_the_compiled_prompt_is_the_same_bytes_every_time_and_its_version_is_their_hash() -> None:
    prompts = [load_prompt(None), load_prompt(None), shipped_prompt()]
    assert len({prompt.text for prompt in prompts}) == 1
    assert prompts[0].sha256 == hashlib.sha256(prompts[0].text.encode()).hexdigest()
    order = [prompts[0].text.index(load_block(name)) for name, _ in BLOCKS]
    assert order == sorted(order)


def load_block(name: str) -> str:
    return resources.files("prompts").joinpath("system", name).read_text("utf-8").strip()


def test_a_block_in_the_users_folder_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "1_identity.md").write_text("\nYou are Bruno, a butler.\n\n", "utf-8")
    prompt = load_prompt(tmp_path)
    assert prompt.text.startswith("You are Bruno, a butler.\n\n")
    assert load_block("1_identity.md") not in prompt.text
    assert all(load_block(name) in prompt.text for name, _ in BLOCKS[1:])
    assert prompt.sha256 != shipped_prompt().sha256
    assert load_prompt(tmp_path) == prompt


def test_a_folder_that_is_not_there_or_has_other_files_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "5_other.md").write_text("x", "utf-8")
    (tmp_path / "2_capabilities.md").mkdir()
    assert load_prompt(tmp_path) == load_prompt(tmp_path / "absent") == shipped_prompt()


@pytest.mark.parametrize(("name", "limit"), BLOCKS)
def test_b4_a_block_over_its_limit_is_refused_with_its_name_and_limit(tmp_path: Path, name: str, limit: int) -> None:
    (tmp_path / name).write_text("stone" + " stone" * (limit - 1), "utf-8")
    assert load_prompt(tmp_path)
    (tmp_path / name).write_text("stone" + " stone" * limit, "utf-8")
    with pytest.raises(EngineError, match=rf"{name}.*{limit + 1} tokens.*1 to {limit}"):
        load_prompt(tmp_path)


def test_an_empty_or_unreadable_block_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "3_rules.md").write_text(" \n", "utf-8")
    with pytest.raises(EngineError, match=r"3_rules\.md has 0 tokens"):
        load_prompt(tmp_path)
    (tmp_path / "3_rules.md").write_bytes(b"\xff\xfe\x00broken")
    with pytest.raises(EngineError, match=r"3_rules\.md.*UTF-8"):
        load_prompt(tmp_path)


def test_windows_line_ends_and_a_byte_order_mark_make_no_other_prompt(tmp_path: Path) -> None:
    text = load_block("4_format.md")
    (tmp_path / "4_format.md").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n")
    assert load_prompt(tmp_path) == shipped_prompt()


async def test_a_memory_sends_the_prompt_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "1_identity.md").write_text("You are Bruno, a butler.", "utf-8")
    prompt = load_prompt(tmp_path)
    async with Memory.open(tmp_path / "person.db", clock=FakeClock(), prompt=prompt) as memory:
        session = await memory.open_session()
        await memory.add_turn(session.id, "user", "Good evening.")
        context = await memory.assemble(session.id)
        assert context.messages[0]["content"] == prompt.text
        assert context.sections["static"].tokens == count_tokens(prompt.text)
