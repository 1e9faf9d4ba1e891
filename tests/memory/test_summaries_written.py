"""Written segments in every language that has a pack: what a person would note of them is in the summary (S1, S2)."""

from bench.summaries import judge, read, shares
from memory.language import load_packs


async def test_topic_and_decisions_are_found_in_at_least_80_percent() -> None:
    judged = await judge(read())
    assert len(judged) == 10 * len({"en", "es", "it", "zh"} & set(load_packs()))
    found = shares(judged)
    assert found["topic"] >= 0.8
    assert found["decisions"] >= 0.8


async def test_every_line_has_at_most_50_tokens_and_is_the_same_every_time() -> None:
    first, second = await judge(read()), await judge(read())
    assert first == second
    assert all(each.tokens <= 50 for each in first)
    assert all(each.line.startswith("topic: ") for each in first)
