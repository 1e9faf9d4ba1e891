"""Logs: JSON lines in hourly files for humans, disposable, never read back, without secrets or message text.

structlog is imported where it is first used: it is slow to load, and the command line should start fast.
"""

import json
import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.redact import Redactor

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

    from assistant.settings import Settings

MESSAGE_TEXT = frozenset({"content", "text", "fact", "quote", "message_text", "prompt", "reply"})
SECRET_NAMES = frozenset({"api_key", "token", "password", "secret", "authorization"})
FILE_NAME = "olvido-%Y-%m-%dT%H.jsonl"
DEEPEST = 8

Event = MutableMapping[str, Any]
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def configure(settings: "Settings", *, verbose: bool = False, clock: Clock = utc_now) -> None:
    """Start logging into the data folder, and expire what is old; called once by whoever runs the program."""
    import structlog

    folder = settings.data_dir / "logs"
    file = LogFile(folder, clock)
    file.prepare()
    expire_logs(folder, clock(), settings.logs.retention_hours)
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _stamp(clock),
        drop_message_text,
        structlog.processors.format_exc_info,
        redact_secrets(settings.secrets()),
    ]
    if verbose:
        processors.append(_echo())
    structlog.configure(
        processors=[*processors, to_json],
        wrapper_class=structlog.make_filtering_bound_logger(settings.logs.level),
        logger_factory=lambda *_: file,
        cache_logger_on_first_use=False,
    )
    _take_library_logs()


def get_logger(**ids: object) -> "FilteringBoundLogger":
    """A logger with these ids bound; before configure its events go nowhere instead of to stdout."""
    import structlog

    if not structlog.is_configured():
        structlog.configure(processors=[_drop], cache_logger_on_first_use=False)
    logger: FilteringBoundLogger = structlog.get_logger(**ids)
    return logger


def bound(**ids: object) -> AbstractContextManager[None]:
    """Bind these ids to every event of the block, in this task and those it starts."""
    import structlog

    return structlog.contextvars.bound_contextvars(**ids)


def expire_logs(folder: Path, now: datetime, hours: int) -> int:
    """Delete the files whose last line is older than that; how many went."""
    gone = 0
    with suppress(OSError):
        for path in folder.iterdir():
            try:
                start = datetime.strptime(path.name, FILE_NAME).replace(tzinfo=UTC)
            except ValueError:  # not one of ours
                continue
            if start + timedelta(hours=1) <= now - timedelta(hours=hours):
                with suppress(OSError):  # another process may have been faster
                    path.unlink()
                    gone += 1
    return gone


class LogFile:
    """Appends each event as one line to the file of its hour; a disk that refuses never stops the program."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._complained = False

    def prepare(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(0o700)
        except OSError as exc:
            self._complain(exc)

    def msg(self, line: str) -> None:
        # one write to a file opened for appending: lines of two processes do not mix, and an expired file stays gone
        data = (line + "\n").encode("utf-8", "backslashreplace")
        try:
            path = self._folder / self._clock().astimezone(UTC).strftime(FILE_NAME)
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, data)
            finally:
                os.close(file)
        except OSError as exc:
            self._complain(exc)

    # structlog calls the method named like the level
    debug = info = warning = error = critical = exception = log = msg

    def _complain(self, exc: OSError) -> None:
        if not self._complained:
            self._complained = True
            _to_stderr(f"Olvido goes on without its log: {self._folder} cannot be written ({exc.strerror}).")


def drop_message_text(_logger: object, method: str, event: Event) -> Event:
    """At info level and above, what people said is not logged, however deep it is (rule L3)."""
    return event if method == "debug" else {key: _without_text(value) for key, value in event.items() if _kept(key)}


def _kept(key: object) -> bool:
    return key not in MESSAGE_TEXT


def _without_text(value: object, depth: int = 0) -> object:
    if depth < DEEPEST and isinstance(value, Mapping):
        return {key: _without_text(inner, depth + 1) for key, inner in value.items() if _kept(key)}
    if depth < DEEPEST and isinstance(value, list | tuple):
        return [_without_text(inner, depth + 1) for inner in value]
    return value


def redact_secrets(secrets: Iterable[str]) -> "Processor":
    """Every value as plain JSON with the secrets taken out, those configured and those that look like one."""
    redact = Redactor(secrets)

    def processor(_logger: object, _method: str, event: Event) -> Event:
        return {str(key): _plain(key, value, redact) for key, value in event.items()}

    return processor


def _plain(key: object, value: object, redact: Redactor, depth: int = 0) -> Any:
    if key in SECRET_NAMES and value is not None:
        return "[redacted]"
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if depth < DEEPEST and isinstance(value, Mapping):
        return {redact(_shown(name)): _plain(name, inner, redact, depth + 1) for name, inner in value.items()}
    if depth < DEEPEST and isinstance(value, list | tuple | set | frozenset):
        return [_plain(None, inner, redact, depth + 1) for inner in value]
    return redact(_shown(value))


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(value) if isinstance(value, datetime | Path) else repr(value)
    except Exception:  # noqa: BLE001 (a value that cannot show itself must not stop what is being logged)
        return f"<{type(value).__name__}>"


def to_json(_logger: object, _method: str, event: Event) -> str:
    return json.dumps(event, ensure_ascii=False)


def _stamp(clock: Clock) -> "Processor":
    def processor(_logger: object, _method: str, event: Event) -> Event:
        return {"at": clock().astimezone(UTC).isoformat(timespec="milliseconds"), **event}

    return processor


def _echo() -> "Processor":
    """The same event, readable, on stderr."""
    import structlog

    colors = sys.stderr.isatty()
    render = structlog.dev.ConsoleRenderer(
        colors=colors, timestamp_key="at", exception_formatter=structlog.dev.plain_traceback
    )

    def processor(logger: Any, method: str, event: Event) -> Event:
        _to_stderr(str(render(logger, method, dict(event))))
        return event

    return processor


def _to_stderr(line: str) -> None:
    with suppress(OSError, ValueError):  # stderr may be closed, or a pipe nobody reads
        print(line, file=sys.stderr, flush=True)


def _drop(_logger: object, _method: str, _event: Event) -> Event:
    from structlog import DropEvent

    raise DropEvent


class _LibraryLogs(logging.Handler):
    """Brings the warnings of libraries into our log: left alone they reach stderr as they are, secrets included."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            detail = record.getMessage()
        except Exception:  # noqa: BLE001 (a library's malformed message is not our failure)
            detail = _shown(record.msg)
        level = min(record.levelno // 10 * 10, logging.CRITICAL)  # structlog knows no levels in between
        get_logger(library=record.name).log(level, "library_warning", detail=detail, exc_info=record.exc_info)


def _take_library_logs() -> None:
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _LibraryLogs)]:
        root.removeHandler(handler)
    root.addHandler(_LibraryLogs(level=logging.WARNING))
