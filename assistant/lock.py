"""One daemon per data folder: a lock the system takes back when the process ends, however it ends."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.errors import AlreadyServing, AssistantError


@contextmanager
def sole_daemon(data_dir: Path) -> Iterator[Callable[[], bool]]:
    """Raises AlreadyServing while another process is inside such a block for the same folder.

    What it yields tells whether the lock is still the folder's: with the folder deleted, or made anew, it keeps nobody
    out any more.
    """
    path = data_dir / "daemon.lock"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if not os.access(data_dir, os.W_OK | os.X_OK):  # the lock was there before
            os.close(file)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as exc:
        raise AssistantError(f"{data_dir} cannot be written: {exc.strerror}. Look with: olvido doctor") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(file, 20, 0).decode("ascii", "replace").strip()
            raise AlreadyServing(
                f"Olvido serves {data_dir} already (process {other or 'unknown'}). Look with: olvido status"
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield lambda: _is(file, path)
    finally:
        os.close(file)


def _is(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False
