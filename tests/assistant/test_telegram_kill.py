"""Design section 6 through Telegram: kill -9 at random moments, every update answered exactly once."""

from bench.telegram_kill import FAULTS, killed


def test_killed_five_times_every_update_is_answered_exactly_once_and_in_order(tmp_path):
    figures = killed(tmp_path, rounds=5, seed=7, drafts=False)  # edits: places are opened while the reply is made
    assert figures["messages"] >= 5
    assert {name: figures[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0), figures
