"""``olvido doctor``: looks at everything the assistant needs, and says what to do about what is wrong."""

import asyncio
import shutil
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assistant.backups import backups_of
from assistant.control import NAME as CONTROL
from assistant.control import ask_status
from assistant.errors import AlreadyServing, AssistantError, ModelError, NotServing
from assistant.lock import sole_daemon
from assistant.people import known_people, language_packs, person_embedder, person_file
from assistant.sockets import socket_file
from assistant.telegram.polling import name_of_bot
from memory.errors import EngineError

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings, Settings

BUILT = datetime(2026, 1, 1, tzinfo=UTC)  # no clock that is right is before this
MODEL_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found at one place; `fix` mends it, where that can be done without asking."""

    name: str
    state: Literal["ok", "warning", "problem"]
    text: str
    fix: Callable[[], None] | None = field(default=None, repr=False)


async def examine(loaded: "LoadedSettings") -> AsyncIterator[Finding]:
    """Everything, one after the other."""
    settings = loaded.settings
    for part in (configuration(loaded), folder(settings)):  # one by one: the next may need what is mended in between
        for finding in part:
            yield finding
    for finding in (disk(settings), clock(settings), packs(loaded)):
        yield finding
    for owner in known_people(settings):
        yield await asyncio.to_thread(database, settings, owner)
        yield backups(settings, owner)
    for finding in leftovers(settings):
        yield finding
    yield await embedder(settings)
    yield await model(settings)
    yield await telegram(settings)
    yield await daemon(settings)


def _ok(name: str, text: str) -> Finding:
    return Finding(name=name, state="ok", text=text)


def _warning(name: str, text: str, fix: Callable[[], None] | None = None) -> Finding:
    return Finding(name=name, state="warning", text=text, fix=fix)


def _problem(name: str, text: str, fix: Callable[[], None] | None = None) -> Finding:
    return Finding(name=name, state="problem", text=text, fix=fix)


def configuration(loaded: "LoadedSettings") -> Iterator[Finding]:
    """That it can be read is why we are here; who else can read it."""
    file = loaded.file
    if file is None:
        yield _ok("configuration", "No file, so the defaults and the environment. Write one with: olvido config init")
        return
    secret = any(
        origin.startswith(str(file)) for key, origin in loaded.origins.items() if key.endswith(("api_key", "token"))
    )
    if secret and file.stat().st_mode & 0o077:
        text = f"{file} holds a secret and others can read it. Mend it with: chmod 600 {file}"
        yield _problem("configuration", text, lambda: file.chmod(0o600))
    else:
        yield _ok("configuration", str(file))


def folder(settings: "Settings") -> Iterator[Finding]:
    """Whether the data folder is there, ours, and closed to others; what lies in it is looked at once it can be."""
    place = settings.data_dir
    if not place.exists():
        yield _ok("data folder", f"{place} is made when something is stored.")
        return
    for path, others in ((place, 0o022), *((place / name, 0o077) for name in ("people", "people/backups", "logs"))):
        if path.is_dir() and (wrong := _rights(path, mine=0o700, others=others)):
            yield wrong
            if _rights(path, mine=0o700, others=others):
                return
    try:
        probe = place / f".doctor-{time.time_ns()}"
        probe.touch(mode=0o600)
        probe.unlink()
    except OSError as exc:
        yield _problem("data folder", f"{place} cannot be written: {exc.strerror}. Correct its owner, or data_dir.")
        return
    yield _ok("data folder", str(place))
    people = place / "people"
    for file in [*people.glob("*.db*"), *people.glob("backups/*.db*")]:
        if wrong := _rights(file, mine=0o600, others=0o077):
            yield wrong


def _rights(path: Path, *, mine: int, others: int) -> Finding | None:
    """What is wrong with the rights of a file or folder: its owner needs these, others may not have those."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & mine == mine and (not mode & others or mode & stat.S_ISVTX):
        return None
    right = mode & ~others | mine
    why = "Others on this machine can get at it." if mode & others else "Its owner cannot use it."
    name = "data folder" if path.is_dir() else f"rights of {path.name}"
    return _problem(name, f"{why} Mend it with: chmod {right:o} {path}", lambda: path.chmod(right))


def disk(settings: "Settings") -> Finding:
    """How much room there is."""
    place = next(path for path in (settings.data_dir, *settings.data_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    text = f"{free / 1e9:.1f} GB free where {place} is."
    if free < settings.serve.low_disk_bytes:
        return _problem("disk", f"{text} Make room: without it nothing new can be remembered.")
    return _ok("disk", text)


def clock(settings: "Settings") -> Finding:
    """Whether time goes on from where it was."""
    now = datetime.now(UTC)
    files = [person_file(settings, owner) for owner in known_people(settings)]
    newest = max((file.stat().st_mtime for file in files), default=0.0)
    last = datetime.fromtimestamp(newest, UTC)
    if now < BUILT or last - now > timedelta(hours=1):
        written = f", but something was stored on {last:%Y-%m-%d %H:%M}" if files else ""
        return _problem("clock", f"It says {now:%Y-%m-%d %H:%M} UTC{written}. Set the clock, or switch on NTP.")
    return _ok("clock", f"{now:%Y-%m-%d %H:%M} UTC; “yesterday” is reckoned in {settings.timezone}.")


def packs(loaded: "LoadedSettings") -> Finding:
    """Whether the languages can be read."""
    try:
        found = language_packs(loaded)
    except (AssistantError, EngineError) as exc:
        return _problem("languages", str(exc))
    return _ok("languages", ", ".join(sorted(found)))


def database(settings: "Settings", owner: str) -> Finding:
    """Whether a person's file is sound, to the last index."""
    from memory.copies import check_file

    file = person_file(settings, owner)
    try:
        check_file(file, limits=settings.limits)
    except EngineError as exc:
        return _problem(f"memory of {owner}", f"{exc} (olvido --owner {owner} restore)")
    return _ok(f"memory of {owner}", f"{file.stat().st_size:,} bytes, sound.")


def backups(settings: "Settings", owner: str) -> Finding:
    """How old the newest copy is."""
    name = f"backups of {owner}"
    newest = next(iter(backups_of(settings, owner)), None)
    if newest is None:
        return _warning(name, f"There is none. Make one with: olvido --owner {owner} backup (the daemon does it daily)")
    return _ok(name, f"The newest is of {newest.at:%Y-%m-%d %H:%M} UTC.")


def leftovers(settings: "Settings") -> Iterator[Finding]:
    """What interrupted work left behind."""
    people = settings.data_dir / "people"
    found = [*people.glob(".*-restoring.db*"), *people.glob("backups/.*.partial*")] if people.is_dir() else []
    if found:

        def remove() -> None:
            for path in found:
                path.unlink(missing_ok=True)

        yield _warning("leftovers", f"{len(found)} files of interrupted copies. Remove them with: doctor --fix", remove)


async def embedder(settings: "Settings") -> Finding:
    """Whether texts can be turned into vectors."""
    from memory.embeddings import EmbeddedEmbedder

    remote = person_embedder(settings)
    try:
        chosen = remote or EmbeddedEmbedder(limits=settings.limits)
        vectors = await chosen.embed(["hello"])
        return _ok("embedder", f"{chosen.model}, {vectors.shape[1]} dimensions.")
    except EngineError as exc:
        return _problem("embedder", str(exc))
    finally:
        if remote is not None:
            await remote.aclose()


async def model(settings: "Settings") -> Finding:
    """Whether the model answers: it is asked for one word."""
    from assistant.model import ChatModel

    patience = min(settings.model.first_token_timeout_seconds, MODEL_SECONDS)
    hasty = settings.model.model_copy(update={"retries": 0, "first_token_timeout_seconds": patience})
    try:
        async with ChatModel.open(settings.model_copy(update={"model": hasty})) as opened:
            async for _ in opened.stream([{"role": "user", "content": "Say yes."}], max_tokens=16):
                pass
            note = " ".join(opened.notes) if not opened.embedded else "the demonstration model on this machine."
            return _ok("model", f"{opened.name} answers. {note}".strip())
    except ModelError as exc:
        return _problem("model", str(exc))


async def telegram(settings: "Settings") -> Finding:
    """Whether Telegram takes the token, and somebody may write."""
    given = settings.telegram
    if given.token is None:
        return _ok("telegram", "Not configured.")
    if given.token_problem:
        return _problem("telegram", given.token_problem)
    bot, problem = await name_of_bot(given)
    if problem:
        return _problem("telegram", problem)
    if not given.people:
        return _warning("telegram", f"The bot is {bot}, but nobody may write. Add your id under [telegram.people].")
    return _ok("telegram", f"The bot is {bot}; {len(given.people)} may write, groups included.")


async def daemon(settings: "Settings") -> Finding:
    """Whether it runs, and answers."""
    try:
        status = await ask_status(settings.data_dir)
    except NotServing as exc:
        return _silent_daemon(settings, exc)
    problems = status["problems"]
    if problems:
        last = max(problems, key=lambda problem: problem["at"])
        return _warning("daemon", f"It runs (process {status['pid']}); last problem, at {last['at']}: {last['text']}")
    return _ok("daemon", f"It runs (process {status['pid']}).")


def _silent_daemon(settings: "Settings", exc: NotServing) -> Finding:
    if not settings.data_dir.is_dir():
        return _ok("daemon", "It does not run. Start it with: olvido serve")
    try:
        with sole_daemon(settings.data_dir):
            pass
    except AlreadyServing:
        return _problem("daemon", str(exc))
    except AssistantError as other:
        return _problem("daemon", str(other))
    stale = [file for file in (socket_file(settings.data_dir, name) for name in (CONTROL, "line")) if file.exists()]
    if stale:
        return _warning("daemon", "It does not run; a killed one left its sockets.", lambda: _unlink(stale))
    return _ok("daemon", "It does not run. Start it with: olvido serve")


def _unlink(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
