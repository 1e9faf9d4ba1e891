"""kill -9 of the daemon at random moments under messages through Telegram: each update is answered exactly once."""

import json
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pysqlite3

from assistant.telegram.api import PLACEHOLDER
from assistant.testing import EchoServer, ForkedOlvido, settings_for
from assistant.testing_telegram import BotServer, telegram_settings
from bench import report
from bench.soundness import is_sound

ROUNDS, FULL_ROUNDS = 5, 50
VARIES = ("messages", "seconds")
USERS = 5
MOST_WAITING = 3  # messages a user has on their way
FAULTS = (
    "unanswered",
    "answered_twice",
    "chats_out_of_order",
    "placeholders_left",
    "refused",
    "token_shown",
    "stored_damaged",
)
LATEST_KILL_SECONDS = 0.4
MOST_ANSWERS = 10  # of a round before the kill


class Crowd:
    """Users who write numbered messages, a few at a time."""

    def __init__(self, bot: BotServer, users: int) -> None:
        self.bot = bot
        self.sent = dict.fromkeys(range(1, users + 1), 0)
        for user in self.sent:
            bot.user(user, f"User{user}")

    def marks(self, user: int) -> list[int]:
        """The numbers of the messages that are answered, as the chat shows them."""
        found = (re.search(rf"#{user}-(\d+)#", shown.text) for shown in self.bot.chat(user))
        return [int(match[1]) for match in found if match]

    def answered(self) -> int:
        """How many answers are shown to anybody."""
        return sum(len(self.marks(user)) for user in self.sent)

    def talk(self) -> None:
        """Everybody who does not wait for too much says something."""
        for user, sent in self.sent.items():
            if sent - len(self.marks(user)) < MOST_WAITING:
                self.sent[user] += 1
                self.bot.say(user, f"What is in note #{user}-{self.sent[user]}# about trains and tea?")


def killed(folder: Path, rounds: int, seed: int, *, users: int = USERS, drafts: bool = True) -> dict[str, int]:
    """Runs the rounds on one data folder; every figure of FAULTS has to be 0."""
    chance = random.Random(seed)
    with EchoServer(pause_seconds=0.05) as model, BotServer(drafts=drafts) as bot:
        crowd = Crowd(bot, users)
        people = {user: f"user{user}" for user in crowd.sent}
        environment = settings_for(model, serve__messages_per_minute=1_000_000) | telegram_settings(bot, people)
        with ForkedOlvido("--data-dir", folder, "serve", environment=environment, errors=folder / "errors") as olvido:
            for number in range(1, rounds + 1):
                wanted = crowd.answered() + chance.randrange(MOST_ANSWERS)
                polled = bot.count("getUpdates")
                olvido.start()
                _until(olvido, partial(_more, bot, polled), crowd.talk)
                _until(olvido, partial(_enough, crowd, wanted), crowd.talk)
                time.sleep(chance.uniform(0, LATEST_KILL_SECONDS))
                olvido.end(signal.SIGKILL)
                report.progress(number, rounds, "killed")
            olvido.start()
            title = olvido.title()
            _until(olvido, lambda: crowd.answered() >= sum(crowd.sent.values()), lambda: None)
            if olvido.end(signal.SIGTERM) != 0:
                raise RuntimeError("the last daemon did not end well")
        for method, why in bot.rejected:
            print(f"refused: {method}: {why}", file=sys.stderr)
        figures = _seen(crowd) | {"refused": len(bot.rejected)}
    secret = bot.token.partition(":")[2].encode()
    return {
        "rounds": rounds,
        **figures,
        "token_shown": sum(secret in text for text in (title, *(file.read_bytes() for file in _files(folder)))),
        "stored_damaged": sum(_damaged(folder / "people" / f"{name}.db") for name in people.values()),
    }


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _more(bot: BotServer, polled: int) -> bool:
    return bot.count("getUpdates") > polled


def _enough(crowd: Crowd, wanted: int) -> bool:
    return crowd.answered() >= wanted


def _until(olvido: ForkedOlvido, true: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
    end = time.monotonic() + 120
    while not true():
        olvido.check()
        if time.monotonic() > end:
            raise RuntimeError("it did not come to that in two minutes")
        meanwhile()
        time.sleep(0.02)


def _seen(crowd: Crowd) -> dict[str, int]:
    twice = unanswered = out_of_order = left = 0
    for user, sent in crowd.sent.items():
        marks = crowd.marks(user)
        twice += len(marks) - len(set(marks))
        unanswered += sent - len(set(marks))
        out_of_order += marks != sorted(marks)
        left += sum(shown.text == PLACEHOLDER for shown in crowd.bot.chat(user))
    names = {"unanswered": unanswered, "answered_twice": twice, "chats_out_of_order": out_of_order}
    return {"messages": sum(crowd.sent.values()), **names, "placeholders_left": left}


def _damaged(file: Path) -> int:
    connection = pysqlite3.connect(file)
    try:
        waiting = connection.execute("SELECT count(*) FROM inbox WHERE sent_at IS NULL").fetchone()[0]
        return int(waiting > 0 or not is_sound(connection))
    finally:
        connection.close()


def main(argv: Sequence[str]) -> dict[str, float]:
    """Run the rounds; print a table and a JSON line."""
    parser = report.arguments(__doc__, full="50 rounds, not 5")
    parser.add_argument("--rounds", type=int, metavar="N", help="so many instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edits", action="store_true", help="a server without drafts")
    options = parser.parse_args(argv)
    rounds = options.rounds or (FULL_ROUNDS if options.full else ROUNDS)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        figures = killed(Path(folder), rounds, options.seed, drafts=not options.edits)
    result = {**figures, "seconds": round(time.perf_counter() - began, 1)}
    print(report.table(["figure", "value"], list(result.items())))
    print(json.dumps(result))
    report.save(result, options.json)
    return result


if __name__ == "__main__":
    report.program(main)
