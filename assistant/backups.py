"""Copies of people's memories: made while they are in use, checked, rotated, and brought back."""

import asyncio
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.errors import AssistantError
from assistant.people import copies_of, known_people, person_file

if TYPE_CHECKING:
    from assistant.settings import Settings
    from memory.ports import Clock

TIME = "%Y%m%dT%H%M%SZ"
_REGULAR = re.compile(r"-(\d{8}T\d{6}Z)(?:-\d+)?\.db$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A copy that was made, or lies there."""

    owner: str
    file: Path
    at: datetime
    bytes: int


def backups_of(settings: "Settings", owner: str) -> list[Backup]:
    """The regular copies of a memory, newest first; those made before an upgrade are not among them."""
    found = []
    for file in copies_of(settings, owner):
        rest = file.name.removeprefix(owner)
        if (match := _REGULAR.match(rest)) and file.suffix == ".db":
            at = datetime.strptime(match[1], TIME).replace(tzinfo=UTC)
            found.append(Backup(owner=owner, file=file, at=at, bytes=file.stat().st_size))
    return sorted(found, key=lambda backup: (backup.at, backup.file.name), reverse=True)


def back_up(settings: "Settings", owner: str, now: datetime) -> Backup:
    """A checked copy of a memory as it is now; others may go on writing. The oldest copies beyond those kept go."""
    from memory.copies import make_copy

    source = person_file(settings, owner)
    if not source.is_file():
        raise AssistantError(f"Nothing is remembered about {owner}: there is nothing to copy.")
    target = _free_name(source.parent / "backups" / f"{owner}-{now.astimezone(UTC).strftime(TIME)}.db")
    make_copy(source, target, limits=settings.limits)
    made = Backup(owner=owner, file=target, at=now, bytes=target.stat().st_size)
    others = [backup for backup in backups_of(settings, owner) if backup.file != target]
    for old in others[settings.backups.keep - 1 :]:
        old.file.unlink(missing_ok=True)
    return made


def due(settings: "Settings", now: datetime) -> list[str]:
    """Whose memory changed since its newest copy, which is older than it may get; a copy of tomorrow counts as none."""
    from memory.copies import holds_memory
    from memory.errors import DatabaseError

    if not settings.backups.every_hours:
        return []
    longest = timedelta(hours=settings.backups.every_hours)
    owners = []
    for owner in known_people(settings):
        newest = next(iter(backups_of(settings, owner)), None)
        if newest and (now - longest < newest.at <= now or not _changed_since(settings, owner, newest)):
            continue
        try:
            new = not holds_memory(person_file(settings, owner), limits=settings.limits)
        except DatabaseError:
            new = False  # whoever copies it will say what is wrong
        if not new:
            owners.append(owner)
    return owners


def _changed_since(settings: "Settings", owner: str, backup: Backup) -> bool:
    file = person_file(settings, owner)
    written = [path.stat().st_mtime_ns for path in (file, file.with_name(f"{file.name}-wal")) if path.exists()]
    return max(written, default=0) > backup.file.stat().st_mtime_ns


def _free_name(file: Path) -> Path:
    number = 1
    free = file
    while os.path.lexists(free):
        number += 1
        free = file.with_name(f"{file.stem}-{number}.db")
    return free


async def restore(settings: "Settings", owner: str, copy: Path, clock: "Clock") -> Path | None:
    """Puts a copy in place of a person's memory; what was there is set aside first. Returns where.

    What was forgotten since the copy was made stays forgotten, and what was answered since is not answered again.
    The file has to be closed: see assistant.control.file_to_ourselves.
    """
    from memory.copies import make_copy, prepare_restore

    file = person_file(settings, owner)
    _refuse_while_used(settings, owner)
    staged = _staged(file)
    try:
        await asyncio.to_thread(remove_memory, staged)  # of an attempt that was cut off
        await asyncio.to_thread(make_copy, copy, staged, limits=settings.limits)
        aside, current = await asyncio.to_thread(_set_aside, settings, owner, clock())
        await prepare_restore(staged, current, clock=clock, limits=settings.limits)
        await asyncio.to_thread(_put_in_place, staged, file)
    finally:
        await asyncio.to_thread(remove_memory, staged)
    return aside


def _refuse_while_used(settings: "Settings", owner: str) -> None:
    from memory.copies import processes_using
    from memory.errors import DatabaseError

    try:
        others = processes_using(person_file(settings, owner), limits=settings.limits)
    except DatabaseError:  # damaged: that is why a copy is wanted
        return
    if others:
        raise AssistantError(
            f"The memory of {owner} is open elsewhere (process {', '.join(map(str, others))}). "
            "Close that conversation first; nothing was changed."
        )


def _set_aside(settings: "Settings", owner: str, now: datetime) -> tuple[Path | None, Path | None]:
    """Where a copy of the present memory is now, and the memory itself if it can be read."""
    from memory.copies import make_copy
    from memory.errors import DatabaseError

    file = person_file(settings, owner)
    if not file.is_file():
        return None, None
    aside = _free_name(file.parent / "backups" / f"{owner}-replaced-{now.astimezone(UTC).strftime(TIME)}.db")
    try:
        make_copy(file, aside, limits=settings.limits)
    except DatabaseError:
        aside = aside.with_suffix(".db.damaged")
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        file.rename(aside)
        return aside, None
    return aside, file


def _put_in_place(staged: Path, file: Path) -> None:
    descriptor = os.open(staged, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    for ending in ("-wal", "-shm"):  # of the memory that is replaced; a copy of it is set aside
        file.with_name(file.name + ending).unlink(missing_ok=True)
    staged.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _staged(file: Path) -> Path:
    """Where a copy is made ready before it takes the place of a person's file; an interrupted restore leaves it."""
    return file.with_name(f".{file.stem}-restoring.db")


def is_known(settings: "Settings", owner: str) -> bool:
    """Whether anything is stored about a person."""
    file = person_file(settings, owner)
    copies = (copy.name.lstrip(".") for copy in copies_of(settings, owner))
    named = any(name.startswith((f"{owner}-", f"{owner}.")) for name in copies)
    return file.exists() or _staged(file).exists() or named


def _of_somebody_else(copy: Path, owner: str) -> bool:
    """A copy we made of another memory, whose own file is not there any more."""
    made = _REGULAR.search(copy.name)
    return made is not None and not f"{copy.name[: made.start()]}-".startswith(f"{owner}-")


def erase(settings: "Settings", owner: str) -> list[Path]:
    """Deletes all that is stored about a person: memory, copies, what was typed, and the logs; what went."""
    from assistant.traces import files_below, history_file

    if not is_known(settings, owner):
        return []
    _refuse_while_used(settings, owner)
    file = person_file(settings, owner)
    staged = _staged(file)
    logs = settings.data_dir / "logs"
    doomed = [
        *(copy for copy in copies_of(settings, owner) if not _of_somebody_else(copy, owner)),
        file,
        *(path.with_name(path.name + ending) for path in (file, staged) for ending in ("-wal", "-shm", "-journal")),
        staged,
        *(files_below(logs) if logs.is_dir() else []),
        *([history_file(settings.data_dir)] if owner == settings.owner else []),
    ]
    gone = [path for path in doomed if path.exists()]
    for path in gone:
        path.unlink(missing_ok=True)
    return gone


def remove_memory(file: Path) -> None:
    """Deletes a file and what SQLite lays beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
