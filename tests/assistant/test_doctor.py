"""``olvido doctor`` finds what is wrong, says what to do, and mends what needs no decision."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.cli import app
from assistant.testing import EchoServer, fails, settings_for
from assistant.testing_telegram import BotServer

ROOT = Path(__file__).parents[2]
KEY = "kq9-verysecretkey-1234567890"


@pytest.fixture
def server():
    with EchoServer() as running:
        yield running


def examined(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, dict[str, dict[str, str]], str]:
    result = CliRunner().invoke(
        app, ["--data-dir", str(folder), "doctor", "--json", *arguments], env={**environment, "HOME": str(folder)}
    )
    findings = {each["name"]: each for each in json.loads(result.stdout)}
    return result.exit_code, findings, result.output


def remember(folder: Path, *facts: str) -> None:
    for fact in facts:
        CliRunner().invoke(app, ["--data-dir", str(folder), "facts", "add", fact], catch_exceptions=False)


def test_all_is_well(server, tmp_path):
    remember(tmp_path / "data", "I live in Lyon")
    code, found, _ = examined(tmp_path / "data", settings_for(server))
    assert code == 0
    assert {name for name, each in found.items() if each["state"] != "ok"} == {"backups of me"}
    wanted = {
        "configuration",
        "data folder",
        "disk",
        "clock",
        "memory of me",
        "embedder",
        "model",
        "telegram",
        "daemon",
    }
    assert wanted <= set(found)


def test_each_trouble_is_named_with_what_to_do(server, tmp_path):
    folder = tmp_path / "data"
    remember(folder, "I live in Lyon")
    (folder / "people" / "me.db").write_bytes(b"junk" * 5000)
    (folder / "people").chmod(0o755)
    server.enqueue(fails(401, f"bad key {KEY}"))
    environment = settings_for(server, model__api_key=KEY, serve__low_disk_bytes=10**18, telegram__token="nonsense")
    code, found, output = examined(folder, environment)
    assert code == 1
    problems = {name: each["text"] for name, each in found.items() if each["state"] == "problem"}
    assert set(problems) == {"data folder", "disk", "memory of me", "model", "telegram"}
    assert "chmod 700" in problems["data folder"] and "restore" in problems["memory of me"]
    assert KEY not in output


def test_fix_mends_rights_and_removes_what_was_left_behind(server, tmp_path):
    folder = tmp_path / "data"
    remember(folder, "I live in Lyon")
    (folder / "people").chmod(0o755)
    (folder / "people" / ".me-restoring.db").touch()
    (folder / "control.sock").touch()
    code, found, _ = examined(folder, settings_for(server), "--fix")
    assert code == 0
    assert (folder / "people").stat().st_mode & 0o077 == 0
    assert not (folder / "people" / ".me-restoring.db").exists() and not (folder / "control.sock").exists()
    assert found["leftovers"]["text"].startswith("Mended")


def test_a_readable_file_with_a_secret_is_closed(server, tmp_path):
    file = tmp_path / "olvido.toml"
    file.write_text(f'[model]\napi_key = "{KEY}"\n')
    file.chmod(0o644)
    arguments = ["--config", str(file), "doctor", "--fix"]
    result = CliRunner().invoke(app, arguments, env=settings_for(server))
    assert "Mended" in result.output and KEY not in result.output
    assert file.stat().st_mode & 0o077 == 0


def test_a_clock_that_is_behind_is_noticed(server, tmp_path):
    import time

    remember(tmp_path / "data", "I live in Lyon")
    later = time.time() + 7 * 86_400
    os.utime(tmp_path / "data" / "people" / "me.db", (later, later))
    code, found, _ = examined(tmp_path / "data", settings_for(server))
    assert code == 1 and found["clock"]["state"] == "problem"


def test_the_bot_is_asked_for_its_name_and_a_wrong_token_is_told_without_it(server, tmp_path):
    with BotServer() as bot:
        wrong = "999999:" + "wrong" * 7
        for token, told in ((bot.token, "@olvido_bot"), (wrong, "@BotFather"), ("nonsense", "no bot's token")):
            environment = settings_for(server, telegram__token=token, telegram__base_url=bot.base_url)
            _, found, output = examined(tmp_path / "data", environment)
            assert told in found["telegram"]["text"] and token not in output
    environment = settings_for(server, telegram__token=bot.token, telegram__base_url=bot.base_url)  # gone now
    assert "cannot be reached" in examined(tmp_path / "data", environment)[1]["telegram"]["text"]


# -- rights, seen by somebody who is bound by them


def bound(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """A command in a process that may not do everything, as that of root may."""
    command = [sys.executable, "-c", "from assistant.cli import main; main()", "--data-dir", str(folder), *arguments]
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("run as root and without setpriv, no rights are missing here")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    ran = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    "rights",
    [
        {"people/me.db": (0o000, 0o600), "people": (0o000, 0o700), "": (0o777, 0o755)},
        {"people/me.db": (0o666, 0o600), "": (0o500, 0o700)},
    ],
)
def test_rights_that_are_too_few_or_too_many_are_named_and_mended(server, tmp_path, rights):
    folder = tmp_path / "data"
    remember(folder, "I live in Lyon")
    for where, (mode, _) in rights.items():
        (folder / where).chmod(mode)
    code, told = bound(folder, settings_for(server), "doctor", "--fix")
    assert code == 0, told
    for where, (_, right) in rights.items():
        assert f"Mend it with: chmod {right:o} {folder / where}" in told
        assert (folder / where).stat().st_mode & 0o777 == right
    assert told.count("Mended") == len(rights) and "memory of me" in told and "sound" in told


@pytest.mark.parametrize(
    ("command", "where", "mode"),
    [(["serve"], "", 0o500), (["facts", "list"], "people", 0o000), (["backup"], "people", 0o000)],
)
def test_a_folder_without_rights_is_told_in_a_sentence(server, tmp_path, command, where, mode):
    folder = tmp_path / "data"
    remember(folder, "I live in Lyon")
    (folder / "daemon.lock").touch(mode=0o600)
    (folder / where).chmod(mode)
    code, told = bound(folder, settings_for(server), *command)
    (folder / where).chmod(0o700)
    assert code == 1 and "Permission denied" in told and "olvido doctor" in told
    assert "Traceback" not in told
