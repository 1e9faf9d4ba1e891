"""``olvido facts`` as a user meets it: real files, real processes where the process matters."""

import asyncio
import json
import os
import pty
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.cli import app
from memory import Memory
from memory.testing import FakeClock, start_python

ROOT = Path(__file__).parents[2]
RUN = "from assistant.cli import main; main()"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to work in, and no settings of whoever runs the tests."""
    for name in [*os.environ]:
        if name.startswith(("OLVIDO_", "OPENAI_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, given: str | bytes | None = None):
    return CliRunner().invoke(app, arguments, input=given)


def out(*arguments: str, given: str | bytes | None = None) -> str:
    done = run(*arguments, given=given)
    assert done.exit_code == 0, done.output
    return done.stdout


def data(*arguments: str):
    return json.loads(out(*arguments, "--json"))


def refused(*arguments: str, given: str | bytes | None = None) -> str:
    """The one line that says why, after which nothing has changed."""
    before = everything()
    done = run(*arguments, given=given)
    assert done.exit_code == 1, done.output
    assert everything() == before
    assert "Traceback" not in done.output
    [line] = done.stderr.splitlines()
    return line


def everything() -> tuple[str, str]:
    return out("facts", "export"), out("facts", "history", "--json")


def remember(*texts: str, days_ago: float = 0, path: str = "data/people/me.db", **given) -> None:
    """Facts stored in the past, as the daemon would."""

    async def store() -> None:
        clock = FakeClock(datetime.now(UTC) - timedelta(days=days_ago))
        async with Memory.open(path, clock=clock) as memory:
            for text in texts:
                await memory.facts.add(text, **given)

    asyncio.run(store())


def process(*arguments: str, program: str = RUN, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(Path.cwd()), **extra}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


# Looking


def test_listing_loads_neither_openai_nor_telegram_nor_the_embedder():
    remember("I like tea")
    program = (
        "import sys\nfrom assistant.cli import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    )
    for arguments in (["facts", "list"], ["facts", "show", "f1"]):
        done = process(*arguments, program=program, OLVIDO_EMBEDDINGS__PROVIDER="openai", OPENAI_API_KEY="k")
        assert done.returncode == 0, done.stderr
        assert "memory.facts" in done.stderr.split()
        assert not {"openai", "telegram", "wordllama", "tokenizers", "snowballstemmer"} & set(done.stderr.split())


def test_looking_at_nothing_creates_nothing(place):
    for arguments in (["list"], ["due"], ["history"], ["export"], ["list", "--state", "all"]):
        assert run("facts", *arguments).exit_code == 0
    for arguments in (["show", "f1"], ["forget", "f1", "-y"], ["undo"], ["confirm", "f1"], ["history", "f1"]):
        done = run("facts", *arguments)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "Nothing is remembered about me yet" in done.stderr
    assert list(place.iterdir()) == []


def test_facts_are_listed_by_state_domain_and_text():
    remember("I like green tea", confidence="medium", days_ago=100)
    remember("I work in fintech", days_ago=200)
    remember("I live in Lyon", "I moved to Paris")
    active = [line.split("\t")[1] for line in out("facts", "list").splitlines()[1:]]
    assert active == ["I moved to Paris"]
    found = {state: [fact["fact"] for fact in data("facts", "list", "--state", state)] for state in
             ("active", "explicit-only", "stale", "superseded")}  # fmt: skip
    assert found == {
        "active": ["I moved to Paris"],
        "explicit-only": ["I like green tea"],
        "stale": ["I work in fintech"],
        "superseded": ["I live in Lyon"],
    }
    assert len(data("facts", "list", "--state", "all")) == 4
    assert [fact["id"] for fact in data("facts", "list", "--state", "all", "--domain", "work")] == ["f2"]
    assert [fact["id"] for fact in data("facts", "list", "--state", "all", "--text", "GREEN")] == ["f1"]
    assert "no such facts" in run("facts", "list", "--text", "nowhere").stderr


def test_show_tells_where_a_fact_comes_from_what_it_replaced_and_when_it_fades():
    remember("I live in Lyon", "I moved to Paris")
    rows = dict(line.split("\t", 1) for line in out("facts", "show", "f2").splitlines())
    assert rows["fact"] == rows["quote"] == "I moved to Paris"
    assert rows["chain"].startswith("f1: I live in Lyon (superseded")
    fades = datetime.strptime(rows["fades at"], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    assert timedelta(days=179) < fades - datetime.now(UTC) < timedelta(days=181)
    shown = data("facts", "show", "f1")
    assert (shown["superseded_by"], shown["fades_at"]) == ("f2", None)
    assert [each["id"] for each in shown["chain"]] == ["f1", "f2"]


def test_due_lists_what_is_about_to_fade_soonest_first():
    remember("I like tea", days_ago=170)
    remember("I work in fintech", days_ago=175)
    remember("I live in Lyon")
    assert [line.split("\t")[0] for line in out("facts", "due").splitlines()] == ["id", "f2", "f1"]
    assert [fact["id"] for fact in data("facts", "due")] == ["f2", "f1"]
    out("facts", "confirm", "f1", "f2")
    assert "Nothing is about to fade" in run("facts", "due").stderr


def test_dates_are_shown_in_the_time_zone_configured(monkeypatch):
    remember("I like tea")
    utc = out("facts", "list").splitlines()[1].split("\t")[-1]
    monkeypatch.setenv("OLVIDO_TIMEZONE", "Asia/Kolkata")
    there = out("facts", "list").splitlines()[1].split("\t")[-1]
    form = "%Y-%m-%d %H:%M"
    apart = datetime.strptime(there, form).replace(tzinfo=UTC) - datetime.strptime(utc, form).replace(tzinfo=UTC)
    assert apart == timedelta(hours=5, minutes=30)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_control_characters_in_a_fact_cannot_steer_the_terminal(options):
    out("facts", "add", "I like \x1b[31mtea\x9b2J and \u202emilk")
    for command in (["list"], ["show", "f1"], ["history"], ["edit", "f1", "--domain", "work"], ["undo"]):
        shown = out("facts", *command, *options)
        assert "milk" in shown
        assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    for form in ("json", "markdown"):
        assert not {"\x1b", "\x9b", "\u202e"} & set(out("facts", "export", "--format", form))


def test_in_a_terminal_the_table_folds_to_its_width():
    remember("I like " + "very " * 30 + "long walks")
    outside, inside = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "COLUMNS": "80", "TERM": "dumb"}
    with subprocess.Popen([sys.executable, "-c", RUN, "facts", "list"], env=environment, stdout=inside):
        os.close(inside)
        shown = read_terminal(outside)
    assert max(map(len, shown.splitlines())) <= 80
    assert "f1" in shown


def read_terminal(descriptor: int, until: str | None = None) -> str:
    shown = b""
    while until is None or until.encode() not in shown:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # Linux reports the end of a terminal as an error
            break
        if not part:
            break
        shown += part
    return shown.decode()


# Changing


def test_add_tells_the_id_how_to_undo_it_and_what_it_did_to_others():
    assert out("facts", "add", "I live in Lyon") == "Saved as f1: I live in Lyon\nUndo with: olvido facts undo f1\n"
    assert "It replaces f1: I live in Lyon\n" in out("facts", "add", "I moved to Paris")
    assert "Known already, and confirmed, as f2" in out("facts", "add", "I moved to Paris")
    added = data("facts", "add", "I moved to Oslo")
    assert (added["fact"]["id"], added["known"], [old["id"] for old in added["superseded"]]) == ("f3", False, ["f2"])


def test_add_takes_domain_confidence_and_pin():
    out("facts", "add", "Tea first", "--domain", "decisions", "--confidence", "low", "--pin")
    shown = data("facts", "show", "f1")
    assert (shown["domain"], shown["confidence"], shown["pinned"]) == ("decisions", "low", True)


def test_a_credential_is_stored_only_when_insisted_on():
    assert "looks like a credential" in refused("facts", "add", "my password is hunter2222")
    assert "Saved as f1" in out("facts", "add", "my password is hunter2222", "--insist")


def test_edit_pin_and_confirm_change_a_fact_and_undo_reverts_each():
    remember("I like tea", days_ago=50)
    assert "Changed f1: I like coffee (work, low)" in out(
        "facts", "edit", "f1", "I like coffee", "--domain", "work", "--confidence", "low"
    )
    assert "Again f1: I like tea" in out("facts", "undo", "f1")
    assert "Pinned f1" in out("facts", "pin", "f1")
    assert "Unpinned f1" in out("facts", "pin", "F1", "--off")
    before = data("facts", "show", "f1")["last_confirmed_at"]
    assert "Confirmed f1" in out("facts", "confirm", "f1")
    assert data("facts", "show", "f1")["last_confirmed_at"] > before
    out("facts", "undo")
    assert data("facts", "show", "f1")["last_confirmed_at"] == before


def test_undo_of_an_addition_takes_it_back_and_restores_what_it_replaced():
    remember("I live in Lyon", "I moved to Paris")
    shown = out("facts", "undo", "f2")
    assert "Taken back f2: I moved to Paris" in shown
    assert "Again f1: I live in Lyon" in shown
    assert [fact["id"] for fact in data("facts", "list", "--state", "all")] == ["f1"]


def test_history_is_told_for_one_fact_with_its_chain_for_all_and_for_the_newest():
    remember("I live in Lyon", "I moved to Paris", "I like tea")
    assert [event["action"] for event in data("facts", "history", "f1")] == ["added", "added", "superseded"]
    assert len(data("facts", "history")) == 4
    assert [event["id"] for event in data("facts", "history", "--limit", "1")] == ["f3"]
    assert out("facts", "history", "f3").splitlines()[1].split("\t")[1:] == ["f3", "added", "I like tea"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["show", "f9"], "There is no fact f9"),
        (["show", "\x1b[31m"], "There is no fact"),
        (["pin", "f9"], "There is no fact f9"),
        (["edit", "f9", "x y"], "There is no fact f9"),
        (["confirm", "f2", "f9"], "There is no fact f9"),
        (["confirm", "f2", "f1"], "f1 was replaced by f2"),
        (["edit", "f1", "x y"], "f1 was replaced by f2"),
        (["forget", "f2", "f9", "-y"], "There is no fact f9"),
        (["undo", "f9"], "There is no fact f9"),
        (["history", "f9"], "There is no fact f9"),
        (["list", "--domain", "food"], "There is no domain “food”"),
        (["list", "--state", "gone"], "There is no state “gone”"),
        (["add", "tea", "--domain", "food"], "There is no domain “food”"),
        (["add", "tea", "--confidence", "sure"], "There is no confidence “sure”"),
        (["edit", "f2", "--domain", "food"], "There is no domain “food”"),
        (["edit", "f2"], "Say what to change"),
        (["add", "  "], "at least one word"),
        (["edit", "f2", ""], "at least one word"),
        (["edit", "f2", "my password is hunter2222"], "looks like a credential"),
        (["add", "caf\udce9"], "not valid UTF-8"),
        (["forget", "f2"], "there is no terminal to ask on"),
        (["import", "absent.json"], "absent.json cannot be read"),
        (["import", "."], "--format"),
        (["import", ".", "--format", "json"], "cannot be read"),
        (["import", "facts.txt"], "--format"),
        (["export", "--format", "xml"], "no such format"),
        (["export", "absent/facts.json"], "cannot be written"),
    ],
)
def test_a_mistake_is_one_sentence_and_changes_nothing(arguments, told):
    remember("I live in Lyon", "I moved to Paris")
    sentence = refused("facts", *arguments)
    assert told in sentence
    assert "\x1b" not in sentence


# Forgetting


def test_forget_shows_exactly_what_goes_and_that_it_cannot_be_undone():
    remember("I live in Lyon", "I moved to Paris", "I like tea")

    async def talk() -> None:
        async with Memory.open("data/people/me.db") as memory:
            session = await memory.open_session()
            await memory.add_turn(session.id, role="user", content="Hello! I moved to Paris.", speaker="Ana")

    asyncio.run(talk())
    shown = out("facts", "forget", "f1", "-y")
    assert "f1\tI live in Lyon\tpersonal\tsuperseded" in shown
    assert "f2\tI moved to Paris\tpersonal\tactive" in shown
    assert "f3" not in shown
    assert "Cut from what Ana said on" in shown
    assert "It cannot be undone." in shown
    assert "Forgotten: f1, f2." in shown
    assert [fact["id"] for fact in data("facts", "list", "--state", "all")] == ["f3"]
    assert "nothing to undo for f1" in refused("facts", "undo", "f1")
    assert {event["fact"] for event in data("facts", "history", "f2")} == {None}


def test_forget_as_json_names_ids_and_no_words():
    remember("I like tea")
    done = data("facts", "forget", "f1", "-y")
    counts = {"turns_cut": 0, "lines_removed": 0, "log_lines": 0}
    assert done == {"forgotten": [{"id": "f1"}], **counts, "left_in": []}


@pytest.mark.parametrize(("answer", "left"), [("n\n", 1), ("y\n", 0)])
def test_in_a_terminal_forget_asks(answer, left):
    remember("I like tea")
    outside, inside = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TERM": "dumb"}
    command = [sys.executable, "-c", RUN, "facts", "forget", "f1"]
    pipes = {"stdin": inside, "stdout": inside, "stderr": inside}
    with subprocess.Popen(command, env=environment, **pipes) as asking:
        os.close(inside)
        read_terminal(outside, until="[y/N]")
        os.write(outside, answer.encode())
        rest = read_terminal(outside)
    assert asking.returncode == left
    assert "Traceback" not in rest
    assert len(data("facts", "list")) == left


# Taking out and bringing in


@pytest.mark.parametrize("name", ["facts.json", "facts.md", "facts.markdown"])
def test_export_to_a_file_and_import_of_it_elsewhere_is_lossless(name):
    remember("I live in Lyon", "I moved to Paris", "我喜欢茶")
    out("facts", "export", name)
    assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    assert "3 imported, 0 known already, 0 forgotten" in out("--owner", "ana", "facts", "import", name)
    assert out("--owner", "ana", "facts", "export") == out("facts", "export")
    assert "0 imported, 3 known already" in out("--owner", "ana", "facts", "import", name)


def test_export_does_not_overwrite_unless_forced():
    remember("I like tea")
    Path("facts.json").write_text("mine")
    assert "--force" in refused("facts", "export", "facts.json")
    assert Path("facts.json").read_text() == "mine"
    out("facts", "export", "facts.json", "--force")
    assert json.loads(Path("facts.json").read_text())["format"] == "olvido-facts"


def test_import_reads_a_pipe_and_tells_what_it_did():
    remember("I like tea")
    done = out("facts", "import", "-", "--format", "markdown", given="- I live in Lyon\n- I like tea\n")
    assert done == ("1 imported, 1 known already, 0 forgotten earlier and left out.\nUndo with: olvido facts undo f2\n")
    exported = out("facts", "export")
    out("--owner", "ana", "facts", "add", "I use Teams")
    told = json.loads(out("--owner", "ana", "facts", "import", "-", "--format", "json", "--json", given=exported))
    assert (told["imported"], told["renamed"]) == (2, {"f1": "f3"})


@pytest.mark.parametrize(
    ("given", "form", "told"),
    [
        (b"\xff\xfe", "json", "not UTF-8"),
        (b"{", "json", "line 1, column 2: this is not valid JSON"),
        (b"## food\n- x", "markdown", "line 1: a heading names a domain"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_whole(given, form, told):
    remember("I like tea")
    assert told in refused("facts", "import", "-", "--format", form, given=given)


# Around it


def test_commands_work_while_another_process_has_the_file_open():
    remember("I like tea")
    script = (
        "import asyncio, sys\nfrom memory import Memory\n"
        "async def main():\n    async with Memory.open(sys.argv[1]) as memory:\n"
        "        await memory.facts.add('I live in Lyon')\n        print('ready', flush=True)\n"
        "        await asyncio.to_thread(sys.stdin.readline)\n"
        "        print([fact.fact for fact in await memory.facts.list(None)])\n"
        "asyncio.run(main())"
    )
    with start_python(script, Path("data/people/me.db").absolute()) as other:
        assert other.stdout.readline() == "ready\n"
        assert len(data("facts", "list")) == 2
        out("facts", "add", "I use Teams")
        assert data("facts", "forget", "f1", "-y")["left_in"] == []
        shown, errors = other.communicate("\n", timeout=30)
    assert (shown, errors) == ("['I use Teams', 'I live in Lyon']\n", "")


def test_the_shell_completes_ids_for_the_owner_and_folder_given():
    remember("I like tea", "I live in Lyon")
    remember("I use Teams", path="else/people/ana.db")
    words = {"_OLVIDO_COMPLETE": "complete_bash", "COMP_CWORD": "3", "COMP_WORDS": "olvido facts show "}
    assert process(**words).stdout.split() == ["f2", "f1"]
    there = {**words, "COMP_CWORD": "7", "COMP_WORDS": "olvido --data-dir else --owner ana facts forget "}
    assert process(**there).stdout.split() == ["f1"]
    nobody = {**words, "COMP_WORDS": "olvido --owner bob facts show ", "COMP_CWORD": "5"}
    done = process(**nobody)
    assert (done.stdout.split(), done.stderr) == ([], "")
    assert not Path("data/people/bob.db").exists()
    states = {**words, "COMP_WORDS": "olvido facts list --state s", "COMP_CWORD": "4"}
    assert process(**states).stdout.split() == ["stale", "superseded"]


def test_a_damaged_file_is_told_in_words():
    Path("data/people").mkdir(parents=True)
    Path("data/people/me.db").write_bytes(b"no database at all" * 100)
    done = run("facts", "list")
    assert done.exit_code == 1
    assert "is damaged" in done.stderr


def test_the_users_own_language_packs_are_read_from_beside_the_configuration():
    remember("I like tea")
    Path("olvido.toml").write_text("")
    Path("languages").mkdir()
    Path("languages/xx.toml").write_text("broken =")
    done = run("facts", "list")
    assert done.exit_code == 1
    assert "xx.toml" in done.stderr
