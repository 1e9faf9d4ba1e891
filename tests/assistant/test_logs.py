"""Logs: one JSON line an event, hourly files that expire, no secrets, no message text, never in the way."""

import json
import logging
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assistant import logs
from assistant.redact import Redactor
from assistant.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
SECRET = "zebra-quartz-0123456789"


@pytest.fixture(autouse=True)
def fresh_logging():
    """structlog and the standard library keep their configuration in the process."""
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, logs._LibraryLogs)]:
        root.removeHandler(handler)


def settings_in(folder: Path, **environ: str) -> Settings:
    return load_settings(None, environ, folder).settings


def start(folder: Path, *, verbose: bool = False, **environ: str) -> None:
    logs.configure(settings_in(folder, **environ), verbose=verbose, clock=lambda: NOW)


def lines(folder: Path) -> list[dict[str, object]]:
    files = sorted((folder / "data" / "logs").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]


def test_an_event_is_one_json_line_in_the_file_of_its_utc_hour(tmp_path):
    start(tmp_path)
    logs.get_logger(chat="c1").info("turn_received", tokens=7, note="two\nlines")
    assert [file.name for file in (tmp_path / "data" / "logs").iterdir()] == ["olvido-2026-03-01T12.jsonl"]
    assert lines(tmp_path) == [
        {
            "at": "2026-03-01T12:30:00.000+00:00",
            "chat": "c1",
            "tokens": 7,
            "note": "two\nlines",
            "event": "turn_received",
            "level": "info",
        }
    ]


def test_a_clock_in_another_zone_still_names_the_utc_hour(tmp_path):
    zone = datetime.fromisoformat("2026-03-01T23:30:00-05:00")
    logs.configure(settings_in(tmp_path), clock=lambda: zone)
    logs.get_logger().info("x")
    assert (tmp_path / "data" / "logs" / "olvido-2026-03-02T04.jsonl").exists()


def test_nobody_else_can_read_the_logs(tmp_path):
    folder = tmp_path / "data" / "logs"
    folder.mkdir(parents=True, mode=0o755)
    start(tmp_path)
    logs.get_logger().info("x")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()] == [0o600]


def test_files_older_than_the_retention_are_deleted_when_logging_starts(tmp_path):
    folder = tmp_path / "data" / "logs"
    folder.mkdir(parents=True)
    for hours in (0, 1, 23, 24, 25, 26, 400):
        (folder / (NOW - timedelta(hours=hours)).strftime(logs.FILE_NAME)).touch()
    (folder / "notes.txt").touch()
    start(tmp_path)
    kept = {(NOW - timedelta(hours=hours)).strftime(logs.FILE_NAME) for hours in (0, 1, 23, 24)}
    assert {file.name for file in folder.iterdir()} == kept | {"notes.txt"}


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(age_minutes=st.integers(0, 6000), hours=st.integers(1, 72))
def test_no_line_goes_before_its_time_and_none_stays_an_hour_longer(tmp_path, age_minutes, hours):
    written = NOW - timedelta(minutes=age_minutes)
    file = tmp_path / written.strftime(logs.FILE_NAME)
    file.touch()
    gone = logs.expire_logs(tmp_path, NOW, hours)
    assert gone == (not file.exists())
    if age_minutes <= hours * 60:
        assert not gone
    if age_minutes > (hours + 1) * 60:
        assert gone
    file.unlink(missing_ok=True)


def test_expiring_a_folder_that_does_not_exist_does_nothing(tmp_path):
    assert logs.expire_logs(tmp_path / "absent", NOW, 24) == 0


def test_events_below_the_level_are_not_written(tmp_path):
    start(tmp_path, OLVIDO_LOGS__LEVEL="warning")
    logs.get_logger().info("quiet")
    logs.get_logger().warning("loud")
    assert [line["event"] for line in lines(tmp_path)] == ["loud"]


def test_bound_ids_are_on_every_event_of_the_block_and_gone_after_it(tmp_path):
    start(tmp_path)
    with logs.bound(turn="t1"):
        logs.get_logger().info("inside")
    logs.get_logger().info("outside")
    inside, outside = lines(tmp_path)
    assert inside["turn"] == "t1"
    assert "turn" not in outside


@pytest.mark.parametrize("key", sorted(logs.MESSAGE_TEXT))
def test_what_people_said_is_logged_at_debug_level_only(tmp_path, key):
    start(tmp_path, OLVIDO_LOGS__LEVEL="debug")
    log = logs.get_logger()
    log.debug("d", **{key: "my words"}, nested={"inner": [{key: "my words"}]})
    for level in (log.info, log.warning, log.error, log.critical):
        level("i", **{key: "my words"}, nested={"inner": [{key: "my words", "kept": 1}]})
    first, *others = lines(tmp_path)
    assert first[key] == "my words"
    assert len(others) == 4
    for line in others:
        assert "my words" not in json.dumps(line)
        assert line["nested"] == {"inner": [{"kept": 1}]}


def test_an_exception_is_in_the_line_with_its_traceback_and_without_secrets(tmp_path):
    start(tmp_path, OLVIDO_TELEGRAM__TOKEN=SECRET)
    try:
        raise ValueError(f"could not reach https://api.telegram.org/bot{SECRET}/getMe with Bearer abc.def")
    except ValueError:
        logs.get_logger().exception("send_failed")
    (line,) = lines(tmp_path)
    assert "ValueError: could not reach" in line["exception"]
    assert "test_logs.py" in line["exception"]
    assert SECRET not in json.dumps(line)
    assert "abc.def" not in json.dumps(line)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcDEF123456",
        "sk-ant-api03-xyz_ABC-123",
        "123456:AAbbccddeeff",
        "987654321:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
        "Bearer eyJhbGciOi.abc-def_1",
        "bearer abcdef",
        "https://user:hunter2@host/v1",
    ],
)
def test_what_looks_like_a_secret_is_taken_out_wherever_it_is(tmp_path, secret):
    start(tmp_path)
    logs.get_logger().warning(
        "x", a=secret, b=[f"see {secret}!"], c={"d": {"e": f"({secret})"}}, f=ValueError(secret), g={secret: 1}
    )
    text = json.dumps(lines(tmp_path))
    assert secret not in text
    assert secret.removeprefix("Bearer ").removeprefix("bearer ") not in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "text", ["12:30:45", "1,200 tokens", "task-sk-1", "https://host/path", "ratio 10000:3", "a bearer"]
)
def test_ordinary_text_stays_as_it_is(text):
    assert Redactor([])(text) == text


@given(secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=4, max_size=60))
def test_a_configured_secret_is_taken_out_in_every_form_it_is_shown_in(secret):
    redact = Redactor(["another-one", secret])
    for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        assert redact(form) == "[redacted]"


def test_configured_secrets_and_fields_named_like_one_are_taken_out(tmp_path):
    environ = {"OLVIDO_MODEL__API_KEY": SECRET, "OLVIDO_MODEL__BASE_URL": "https://u:p%40ss-word@h/v1"}
    start(tmp_path, **environ)
    logs.get_logger().info("x", a=f"key={SECRET}", b="p@ss-word", c="p%40ss-word", token="short", tokens=5)
    (line,) = lines(tmp_path)
    assert SECRET not in json.dumps(line)
    assert (line["b"], line["c"], line["token"], line["tokens"]) == ("[redacted]", "[redacted]", "[redacted]", 5)


def test_values_of_any_kind_can_be_logged(tmp_path):
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    start(tmp_path)
    circle: list[object] = []
    circle.append(circle)
    logs.get_logger().info("x", a=Mute(), b=circle, c=float("nan"), d={1: {2}}, e="\ud800", f=b"\xff", g=tmp_path)
    (line,) = lines(tmp_path)
    assert (line["a"], line["c"], line["d"], line["g"]) == ("<Mute>", "nan", {"1": [2]}, str(tmp_path))


def test_a_disk_that_refuses_is_told_once_and_never_stops_the_program(tmp_path, capsys):
    (tmp_path / "data").write_text("a file where the folder should be")
    start(tmp_path)
    for _ in range(3):
        logs.get_logger().info("x")
    assert capsys.readouterr().err.count("goes on without its log") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_never_stops_the_program(tmp_path, capsys):
    start(tmp_path)
    (tmp_path / "data" / "logs" / NOW.strftime(logs.FILE_NAME)).symlink_to("/dev/full")
    logs.get_logger().info("x")
    assert "goes on without its log" in capsys.readouterr().err


def test_nothing_is_printed_unless_verbose(tmp_path, capsys):
    start(tmp_path)
    logs.get_logger().error("x", key="value")
    assert capsys.readouterr() == ("", "")
    start(tmp_path, verbose=True, OLVIDO_MODEL__API_KEY=SECRET)
    logs.get_logger().info("turn_received", key="value", text="words", other=SECRET)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "turn_received" in shown.err
    assert "value" in shown.err
    assert "words" not in shown.err
    assert SECRET not in shown.err
    assert len(lines(tmp_path)) == 2


def test_before_logging_is_configured_events_go_nowhere_and_after_it_into_the_file(tmp_path, capsys):
    early = logs.get_logger()
    early.error("too_early")
    start(tmp_path)
    early.error("in_time")
    assert capsys.readouterr() == ("", "")
    assert [line["event"] for line in lines(tmp_path)] == ["in_time"]


def test_warnings_of_libraries_come_into_the_log_redacted(tmp_path):
    start(tmp_path, OLVIDO_TELEGRAM__TOKEN=SECRET)
    start(tmp_path, OLVIDO_TELEGRAM__TOKEN=SECRET)  # twice: each warning is still logged once
    logging.getLogger("telegram.ext").log(35, "cannot reach %s", f"/bot{SECRET}/getMe")
    logging.getLogger("telegram.ext").info("ignored")
    (line,) = lines(tmp_path)
    assert (line["event"], line["library"], line["level"]) == ("library_warning", "telegram.ext", "warning")
    assert line["detail"] == "cannot reach /bot[redacted]/getMe"


def test_lines_of_two_processes_do_not_mix(tmp_path):
    program = (
        "import os, sys; from pathlib import Path; from assistant import logs\n"
        "from assistant.settings import load_settings\n"
        "logs.configure(load_settings(None, {}, Path(sys.argv[1])).settings)\n"
        "log = logs.get_logger(who=sys.argv[2])\n"
        "for number in range(300): log.info('x', number=number, filler='f' * 3000)\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), who], env=environ) for who in ("a", "b")]
    assert [process.wait(60) for process in running] == [0, 0]
    written = lines(tmp_path)
    for who in ("a", "b"):
        assert [line["number"] for line in written if line["who"] == who] == list(range(300))


def test_importing_the_module_does_not_load_structlog():
    program = "import sys, assistant.logs; sys.exit('structlog' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
