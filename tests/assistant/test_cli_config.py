"""The command line as a user meets it: real processes, real files, real pipes, a real terminal."""

import json
import os
import pty
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from assistant.cli import app
from assistant.example import render_example
from assistant.settings import load_settings, setting_keys

ROOT = Path(__file__).parents[2]
RUN = "from assistant.cli import main; main()"
SECRET = "sk-zebra-quartz-0123456789"
HEAVY = ["openai", "telegram", "wordllama", "pydantic_settings", "structlog", "numpy", "rich.traceback"]


def environment(**extra: str) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "LANG", "COVERAGE_PROCESS_START") if name in os.environ}
    return {**inherited, "PYTHONPATH": str(ROOT), "COLUMNS": "80", **extra}


def olvido(folder: Path, *arguments: str, program: str = RUN, **extra: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(**extra), capture_output=True, text=True, encoding="utf-8", timeout=60,
        check=False,
    )  # fmt: skip


def in_terminal(folder: Path, *arguments: str, **extra: str) -> str:
    """What a terminal of 80 columns shows."""
    outside, inside = pty.openpty()
    command = [sys.executable, "-c", RUN, *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment(TERM="dumb", **extra), stdout=inside):
        os.close(inside)
        shown = b""
        while True:
            try:
                part = os.read(outside, 65536)
            except OSError:  # Linux reports the end of a terminal as an error
                break
            if not part:
                break
            shown += part
    os.close(outside)
    return shown.decode()


# Starting


@pytest.mark.parametrize(
    "arguments", [["--help"], ["config", "--help"], ["config", "show", "--help"], ["chat", "--help"]]
)
def test_help_loads_nothing_heavy_and_fits_80_columns(tmp_path, arguments):
    program = (
        "import sys\nfrom assistant.cli import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = olvido(tmp_path, *arguments, program=program)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: olvido")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "assistant.cli" in done.stderr.split()
    assert not set(HEAVY) & set(done.stderr.split())


def test_help_names_the_commands_and_global_options(tmp_path):
    shown = olvido(tmp_path, "--help").stdout
    for word in (
        "--config",
        "--data-dir",
        "--owner",
        "--verbose",
        "--version",
        "--install-completion",
        "chat",
        "config",
    ):
        assert word in shown


def commands(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *path, name)


@pytest.mark.parametrize("path", [path for path, _ in commands(get_command(app))], ids=" ".join)
def test_every_help_reads_well_at_80_columns(path, monkeypatch):
    """It says what the command does, explains every option and parameter, and no line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    command = dict(commands(get_command(app)))[path]
    done = CliRunner().invoke(app, [*path, "--help"], prog_name="olvido", terminal_width=80)
    lines = done.output.splitlines()
    assert done.exit_code == 0
    assert lines[0].startswith(" ".join(["Usage: olvido", *path]))
    assert max(map(len, lines)) <= 80
    assert command.help.partition("\n\n")[0].endswith("."), "a sentence that says what it does"
    for parameter in command.params:
        assert parameter.name == "help" or getattr(parameter, "help", None), parameter.name
    assert "<int range>" not in done.output, "name what stands there: metavar"
    for _, below in list(commands(command))[1:]:
        assert below.get_short_help_str(200)


def test_version_is_told(tmp_path):
    done = olvido(tmp_path, "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("olvido ")


# Failing


def test_an_error_of_ours_is_a_sentence_and_verbose_adds_the_traceback(tmp_path):
    (tmp_path / "olvido.toml").write_text('ownr = "ana"')
    done = olvido(tmp_path, "config", "show")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Did you mean owner?" in done.stderr
    assert "Traceback" not in done.stderr
    verbose = olvido(tmp_path, "--verbose", "config", "show")
    assert verbose.returncode == 1
    assert "Traceback" in verbose.stderr
    assert verbose.stderr.endswith(done.stderr)


def test_an_error_of_the_engine_is_a_sentence_too(tmp_path):
    program = (
        "from assistant.cli import app, main\nfrom memory.errors import DatabaseBusy\n"
        "@app.command('busy')\ndef busy() -> None:\n    raise DatabaseBusy('Try again later.')\nmain()"
    )
    done = olvido(tmp_path, "busy", program=program)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Try again later.\n")


def test_a_defect_keeps_its_traceback(tmp_path):
    program = (
        "from assistant.cli import app, main\n@app.command('broken')\ndef broken() -> None:\n    raise KeyError\nmain()"
    )
    done = olvido(tmp_path, "broken", program=program)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_wrong_option_is_a_usage_error(tmp_path):
    done = olvido(tmp_path, "config", "show", "--jsn")
    assert done.returncode == 2
    assert "--jsn" in done.stderr


def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path):
    program = (
        "import time\nfrom assistant.cli import app, main\n@app.command('wait')\n"
        "def wait() -> None:\n    print('waiting', flush=True)\n    time.sleep(60)\nmain()"
    )
    command = [sys.executable, "-c", program, "wait"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), text=True, **pipes) as process:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors


@pytest.mark.parametrize("arguments", [["--help"], ["config", "show"], ["config", "show", "--json"]])
def test_a_closed_pipe_is_silent(tmp_path, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", RUN, *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)
    assert done.stderr == b""


# olvido config show


def test_show_lists_every_setting_with_its_value_and_origin(tmp_path):
    (tmp_path / "olvido.toml").write_text('owner = "Zoë"\n[telegram.people]\n7 = "小明"')
    done = olvido(tmp_path, "config", "show", OLVIDO_LIMITS__FACTS_TOKENS="120")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    file = str(tmp_path / "olvido.toml")
    assert rows[0] == ["key", "value", "from"]
    assert ["owner", "Zoë", file] in rows
    assert ["telegram.people.7", "小明", file] in rows
    assert ["limits.facts_tokens", "120", "environment OLVIDO_LIMITS__FACTS_TOKENS"] in rows
    assert ["model.api_key", "not set", "default"] in rows
    assert {row[0] for row in rows[1:]} == {*setting_keys(), "telegram.people.7"} - {"telegram.people"}


def test_show_as_json_has_values_origins_and_the_file(tmp_path):
    (tmp_path / "olvido.toml").write_text('owner = "小明"')
    done = olvido(tmp_path, "config", "show", "--json")
    shown = json.loads(done.stdout)
    assert "小明" in done.stdout
    assert shown["file"] == str(tmp_path / "olvido.toml")
    assert shown["settings"]["owner"] == {"value": "小明", "from": shown["file"]}
    assert shown["settings"]["limits.facts_tokens"] == {"value": 150, "from": "default"}
    assert shown["settings"]["telegram.people"] == {"value": {}, "from": "default"}
    assert set(shown["settings"]) == set(setting_keys())


@pytest.mark.parametrize(
    "arguments", [["config", "show"], ["config", "show", "--json"], ["--verbose", "config", "show"]]
)
def test_show_masks_secrets_and_passwords_in_addresses(tmp_path, arguments):
    secrets = {
        "OLVIDO_MODEL__API_KEY": SECRET,
        "TELEGRAM_BOT_TOKEN": SECRET,
        "OLVIDO_MODEL__BASE_URL": f"https://ana:{SECRET}@host/v1",
        "OLVIDO_EMBEDDINGS__BASE_URL": f"https://{SECRET}@host/v1",
    }
    done = olvido(tmp_path, *arguments, **secrets)
    assert SECRET not in done.stdout + done.stderr
    assert done.stdout.count("set (masked)") == 2
    assert done.stdout.count("https://***@host/v1") == 2


def test_in_a_terminal_of_80_columns_wide_values_fold_and_nothing_is_lost(tmp_path):
    folder = tmp_path / ("deep" * 30)
    shown = in_terminal(tmp_path, "--data-dir", str(folder), "config", "show", OLVIDO_MODEL__NAME="[bold]x[/bold]")
    assert max(map(len, shown.splitlines())) <= 80
    assert "[bold]x[/bold]" in shown
    column = shown.splitlines()[1].index("value"), shown.splitlines()[1].index("from")
    assert str(folder) in "".join(line[column[0] : column[1]].strip() for line in shown.splitlines()[3:])


def test_options_win_over_the_environment_and_the_data_folder_is_meant_from_here(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "c.toml").write_text('owner = "file"')
    options = ["--config", "elsewhere/c.toml", "--data-dir", "mine", "--owner", "ana"]
    done = olvido(tmp_path, *options, "config", "show", "--json", OLVIDO_OWNER="environment")
    settings = json.loads(done.stdout)["settings"]
    assert settings["owner"] == {"value": "ana", "from": "option --owner"}
    assert settings["data_dir"] == {"value": str(tmp_path / "mine"), "from": "option --data-dir"}
    refused = olvido(tmp_path, "--owner", "../x", "config", "show")
    assert refused.returncode == 1
    assert "owner (option --owner)" in refused.stderr


def test_looking_at_the_settings_writes_nothing(tmp_path):
    for arguments in (["config", "show"], ["config", "path"], ["--help"], ["facts", "list"]):
        olvido(tmp_path, *arguments)
    assert list(tmp_path.iterdir()) == []


# olvido config init and path


def test_init_writes_the_commented_file_for_the_owner_alone(tmp_path):
    done = olvido(tmp_path, "config", "init")
    file = tmp_path / "olvido.toml"
    assert done.returncode == 0
    assert file.read_text(encoding="utf-8") == render_example()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_settings(None, {}, tmp_path).file == file


def test_init_refuses_to_overwrite_unless_forced(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("owner = 'ana'")
    file.chmod(0o644)
    done = olvido(tmp_path, "config", "init", "mine.toml")
    assert done.returncode == 1
    assert "--force" in done.stderr
    assert file.read_text() == "owner = 'ana'"
    assert olvido(tmp_path, "config", "init", "mine.toml", "--force").returncode == 0
    assert file.read_text(encoding="utf-8") == render_example()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_init_into_a_folder_that_does_not_exist_is_refused_in_words(tmp_path):
    done = olvido(tmp_path, "config", "init", "absent/olvido.toml")
    assert done.returncode == 1
    assert done.stderr == "absent/olvido.toml cannot be written: No such file or directory. Name another file.\n"


def test_path_tells_the_file_in_force_even_when_it_is_broken(tmp_path):
    none = olvido(tmp_path, "config", "path")
    assert (none.returncode, none.stdout) == (0, "")
    assert "olvido config init" in none.stderr
    (tmp_path / "olvido.toml").write_text("broken =")
    assert olvido(tmp_path, "config", "path").stdout == f"{tmp_path / 'olvido.toml'}\n"
    users = tmp_path / "x" / "olvido" / "olvido.toml"
    users.parent.mkdir(parents=True)
    users.touch()
    work = tmp_path / "work"
    work.mkdir()
    assert olvido(work, "config", "path", XDG_CONFIG_HOME=str(tmp_path / "x")).stdout == f"{users}\n"
