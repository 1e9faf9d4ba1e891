"""Written segments in every language that has a pack: what a person would note of them is in the summary (S1, S2)."""

from bench.summaries import judge, read
from memory.language import load_packs


async def test_of_topics_and_decisions_together_at_least_80_percent_are_in_the_summary() -> None:
    judged = await judge(read())
    assert len(judged) == 10 * len({"en", "es", "it", "zh"} & set(load_packs()))
    wanted = len(judged) + sum(each.decisions_wanted for each in judged)
    found = sum(each.mentioned for each in judged) + sum(each.decisions for each in judged)
    assert found / wanted >= 0.8


async def test_every_line_has_at_most_50_tokens_and_is_the_same_every_time() -> None:
    first, second = await judge(read()), await judge(read())
    assert first == second
    assert all(each.tokens <= 50 for each in first)
    assert all(each.line.startswith("topic: ") for each in first)
