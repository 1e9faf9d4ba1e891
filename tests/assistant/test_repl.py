"""The conversation as a person has it: on a real pseudo-terminal and through a pipe, with the real embedded model and
with written replies over real HTTP."""

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from assistant import embedded
from assistant.testing import ChatReply, OpenAIServer, Terminal, says

ROOT = Path(__file__).parents[2]
missing = [name for name in (embedded.MODEL_PACKAGE, "xllamacpp") if find_spec(name) is None]
real = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}; make test installs it")
UP, CTRL_C, CTRL_D, ALT_ENTER = "\x1b[A", "\x03", "\x04", "\x1b\r"
TEN = [
    "Hello!",
    "I live in Lyon.",
    "Name a colour.",
    "And a fruit?",
    "What is two plus two?",
    "I like green tea.",
    "Tell me about rivers.",
    "Name an animal.",
    "What should I cook?",
    "Goodbye, see you soon.",
]
FEW_WORDS = {"OLVIDO_MODEL__MAX_REPLY_TOKENS": "4"}  # the model is slow, and says nothing that matters here


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


def scripted(server: OpenAIServer) -> dict[str, str]:
    return {
        **quiet_environment(),
        "OLVIDO_MODEL__PROVIDER": "custom",
        "OLVIDO_MODEL__BASE_URL": server.base_url,
        "OLVIDO_MODEL__NAME": "written",
        "OLVIDO_MODEL__SUMMARIES": "extracted",  # every request to the server is a turn
    }


def quiet_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("OLVIDO_", "NO_COLOR"))}


def prompts(text: str) -> int:
    return sum(line.startswith("›") for line in text.splitlines())


def say(terminal: Terminal, words: str) -> str:
    """Types a message and reads until the next prompt; what was shown in between."""
    before = prompts(terminal.text)
    terminal.type(f"{words}\r")
    terminal.wait_until(lambda text: prompts(text) > before and text.endswith("›"))
    return terminal.text.rpartition(f"› {words[:20]}")[2].partition("\n")[2].removesuffix("›").strip()


def opened(terminal: Terminal) -> Terminal:
    terminal.wait_until(lambda text: text.endswith("›"))
    return terminal


def leave(terminal: Terminal) -> None:
    terminal.type(CTRL_D)
    assert terminal.wait_for_end() == 0
    assert terminal.text.endswith("Goodbye.")


def processes() -> dict[int, tuple[int, str]]:
    """Parent and state of everything that runs."""
    if Path("/proc/self/stat").exists():  # a small Linux may have no ps
        found = {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                state, parent, *_ = file.read_text().rpartition(")")[2].split()
                found[int(file.parent.name)] = (int(parent), state)
        return found
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    return {int(pid): (int(parent), state) for pid, parent, state in rows}


def children(pid: int) -> list[int]:
    return [child for child, (parent, _) in processes().items() if parent == pid]


def gone(pid: int, seconds: float = 10.0) -> bool:
    give_up = time.monotonic() + seconds
    while (running := processes().get(pid)) and not running[1].startswith("Z"):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True


# --- with the embedded model


@real
@pytest.mark.long
def test_ten_turns_with_the_embedded_model_on_a_terminal(tmp_path):
    environ = {**quiet_environment(), **FEW_WORDS}
    with Terminal(["--data-dir", str(tmp_path), "chat"], environ, columns=100, rows=30) as terminal:
        opened(terminal)
        assert "small demonstration model" in terminal.text
        (child,) = children(terminal.process.pid)
        for words in TEN:
            shown = say(terminal, words)
            answer = [line for line in shown.splitlines() if line and not line.startswith(("✓", "·"))]
            assert answer and not any(line.startswith("✗") for line in answer), terminal.text
        assert "I live in Lyon" in say(terminal, "/facts")
        terminal.type(f"{UP}{UP}")  # the command, then the last message
        terminal.wait_until(lambda text: text.endswith(f"› {TEN[-1]}"))
        terminal.type(CTRL_C)
        opened(terminal)
        terminal.type("Tell me a long story.\r")
        terminal.wait_until(lambda text: not text.endswith("story."))
        terminal.type(CTRL_C)  # before or while it speaks, or when it just ended: the talk goes on in any case
        terminal.wait_until(lambda text: text.rpartition("story.")[2].endswith("›"))
        assert "✗" not in say(terminal, "Are you still there?")
        leave(terminal)
    assert gone(child)


@real
@pytest.mark.long
def test_the_embedded_model_through_a_pipe(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", "from assistant.cli import main; main()", "--data-dir", str(tmp_path), "chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**quiet_environment(), **FEW_WORDS, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"},
    )
    assert process.stdin and process.stdout
    process.stdin.write(f"{TEN[0]}\n/stats\n")
    process.stdin.flush()
    lines = []
    while not (lines and lines[-1].startswith("Request:")):
        lines.append(process.stdout.readline())
    (child,) = children(process.pid)
    shown, errors = process.communicate("".join(f"{words}\n/stats\n" for words in TEN[1:]), timeout=120)
    written = re.findall(r"(\d+) written", "".join(lines) + shown)
    assert len(written) == len(TEN) and all(int(count) > 0 for count in written)
    assert "[Saved as f1: I live in Lyon" in shown
    assert (process.returncode, errors) == (0, "")
    assert gone(child)


# --- with written replies


def test_ctrl_c_stops_a_reply_keeps_its_words_and_the_talk(server, tmp_path):
    server.enqueue(ChatReply(pieces=("The first line. ", "And then"), hang_seconds=30), says("Here I am."))
    with Terminal(["--data-dir", str(tmp_path), "chat"], scripted(server)) as terminal:
        opened(terminal)
        terminal.type("Talk to me.\r")
        terminal.wait_until(lambda text: "And then" in text)
        terminal.type(CTRL_C)
        terminal.wait_until(lambda text: "(stopped)" in text and text.endswith("›"))
        assert terminal.text.count("The first line. And then") == 1
        assert terminal.text.count("The first line") == 1
        assert "^C" not in terminal.text
        assert say(terminal, "Still there?") == "Here I am."
        sent = server.history[-1].body["messages"]
        assert [message["content"] for message in sent[1:-1]] == ["Talk to me.", "The first line. And then"]
        leave(terminal)


def test_what_is_typed_during_a_reply_waits_for_the_next_prompt(server, tmp_path):
    server.enqueue(ChatReply(pieces=("One moment", " please."), delay_seconds=1.0), says("Second answer."))
    with Terminal(["--data-dir", str(tmp_path), "chat"], scripted(server)) as terminal:
        opened(terminal)
        terminal.type("First.\r")
        terminal.wait_until(lambda text: not text.endswith("First."))
        terminal.type("Second.\r")
        terminal.wait_until(lambda text: "Second answer." in text and text.endswith("›"))
        assert re.search(r"› First\.\nOne moment please\.\n\n› Second\.\nSecond answer\.", terminal.text), terminal.text
        leave(terminal)


def test_a_reply_longer_than_the_screen_is_shown_once(server, tmp_path):
    lines = [f"{number}. item number {number}" for number in range(1, 31)]
    paragraphs = [f"Paragraph {number} of some words." for number in range(1, 11)]
    text = "\n".join(lines) + "\n\n" + "\n\n".join(paragraphs)
    server.enqueue(ChatReply(pieces=tuple(re.findall(r"\S+\s*", text)), pause_seconds=0.01))
    environ = {**scripted(server), "LINES": "50", "COLUMNS": "200"}  # of another terminal
    with Terminal(["--data-dir", str(tmp_path), "chat"], environ, rows=12) as terminal:
        opened(terminal)
        shown = say(terminal, "Count.")
        for number in range(1, 31):
            assert len(re.findall(rf"item number {number}$", shown, re.MULTILINE)) == 1, terminal.text
        assert shown.endswith("30 item number 30\n\n" + "\n\n".join(paragraphs)), terminal.text
        leave(terminal)


def test_what_the_model_says_does_not_steer_the_terminal(server, tmp_path):
    server.enqueue(says("before \x1b[2J\x1b[31mred\x07 after"))
    with Terminal(["--data-dir", str(tmp_path), "chat"], scripted(server)) as terminal:
        opened(terminal)
        assert say(terminal, "Hi.") == "before [2J[31mred after"
        assert terminal.text.startswith("Olvido")
        leave(terminal)


def test_several_lines_and_completion_of_commands(server, tmp_path):
    with Terminal(["--data-dir", str(tmp_path), "chat"], scripted(server)) as terminal:
        opened(terminal)
        terminal.type(f"one{ALT_ENTER}two\r")
        terminal.wait_until(lambda text: "All right." in text and text.endswith("›"))
        assert server.history[-1].body["messages"][-1]["content"].endswith("one\ntwo")
        terminal.type("/pri")
        terminal.wait_until(lambda text: "/private" in text and "keep nothing" in text)
        terminal.type("\t\r")
        terminal.wait_until(lambda text: "From now on I keep nothing" in text)
        leave(terminal)


def test_without_colours_and_in_forty_columns(server, tmp_path):
    server.enqueue(says("**Bold** and `code` and a sentence that has to be wrapped."))
    environ = {**scripted(server), "NO_COLOR": "1"}
    with Terminal(["--data-dir", str(tmp_path), "chat"], environ, columns=40, rows=50) as terminal:
        opened(terminal)
        say(terminal, "I live in Lyon.")
        for command in ("/help", "/facts", "/context", "/why", "/stats"):
            assert say(terminal, command)
        cells = [cell for row in terminal.screen.buffer.values() for cell in row.values()]
        assert {cell.fg for cell in cells} | {cell.bg for cell in cells} == {"default"}
        leave(terminal)


def test_facts_are_shown_as_they_were_said(server, tmp_path):
    with Terminal(["--data-dir", str(tmp_path), "chat"], scripted(server)) as terminal:
        opened(terminal)
        say(terminal, "/remember my *star* is `x` <b> a_b_c [1](2) # | ~~no~~")
        assert "f1  my *star* is `x` <b> a_b_c [1](2) # | ~~no~~ (" in say(terminal, "/facts")
        leave(terminal)


def test_a_message_cut_off_by_a_kill_is_told_at_the_next_start_and_retry_asks_it(server, tmp_path):
    server.enqueue(ChatReply(pieces=("I was about", " to say"), hang_seconds=30), says("Berries, then."))
    with Terminal(["--data-dir", str(tmp_path), "chat"], scripted(server)) as terminal:
        opened(terminal)
        terminal.type("What shall I eat?\r")
        terminal.wait_until(lambda text: "to say" in text)
        terminal.process.kill()
    with Terminal(["--data-dir", str(tmp_path), "chat"], scripted(server)) as terminal:
        opened(terminal)
        assert "“What shall I eat?” /retry" in terminal.text
        assert say(terminal, "/retry") == "Berries, then."
        leave(terminal)
    assert server.history[-1].body["messages"][-1]["content"].endswith("What shall I eat?")
    with Terminal(["--data-dir", str(tmp_path), "chat"], scripted(server)) as terminal:
        opened(terminal)
        assert "What shall I eat?" not in terminal.text
        assert "nothing to ask again" in say(terminal, "/retry")
        leave(terminal)


INTERRUPTED = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == loading:
            os.kill(os.getpid(), signal.SIGINT)

from assistant.start import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored
loading, folder = sys.argv[1:]
sys.argv[1:] = ["--data-dir", folder, "chat"]
sys.meta_path.insert(0, Interrupting())
main()
"""


@pytest.mark.parametrize("loading", ["typer", "assistant.settings", "assistant.repl"])
def test_ctrl_c_while_it_is_still_loading_ends_it_without_a_traceback(server, tmp_path, loading):
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, loading, str(tmp_path)],
        env={**scripted(server), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "")
