"""Design section 6 through Telegram: kill -9 at random moments, every update answered exactly once."""

import pytest

from bench.telegram_kill import FAULTS, killed


@pytest.mark.long
def test_killed_five_times_every_update_is_answered_exactly_once_and_the_token_is_written_nowhere(tmp_path):
    # edits instead of drafts: places are opened while the reply is made
    figures = killed(tmp_path, rounds=5, seed=7, users=3, drafts=False)
    assert figures["messages"] >= 5
    assert {name: figures[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0), figures
