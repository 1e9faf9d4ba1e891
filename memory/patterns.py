"""The language packs parsed and their patterns compiled, kept beside them as Python keeps compiled modules.

A pack has some hundred long patterns. To compile them takes a second or three, to read them back a few hundredths of
one. Whatever is wrong with the file, or with this interpreter's way of doing it: the pattern is simply compiled.
"""

import atexit
import contextlib
import hashlib
import marshal
import re
import sys
import tempfile
import tomllib
import zlib
from array import array
from pathlib import Path
from typing import Any

_FEW = 20  # so few new patterns are not worth writing the file again


class Patterns:
    """The patterns of one pack; those compiled anew are added to its file, at the latest when the process ends."""

    def __init__(self, pack: Path | None) -> None:
        self._file = _file_of(pack) if pack else None
        self._known: dict[str, Any] | None = None
        self._new = 0

    def compile(self, text: str) -> re.Pattern[str]:
        """The same as re.compile."""
        if self._file is None:
            return re.compile(text)
        if self._known is None:
            self._known = _read(self._file)
            atexit.register(self.save)
        if text in self._known:
            with contextlib.suppress(Exception):
                return _restored(text, self._known[text])
        with contextlib.suppress(ImportError, AttributeError, TypeError, ValueError):
            parts = _taken_apart(text)
            pattern = _restored(text, parts)
            self._known[text] = parts
            self._new += 1
            if self._new * 2 > len(self._known):  # a process that is killed, or runs for months, does not waste it all
                self.save()
            return pattern
        return re.compile(text)

    def save(self) -> None:
        """Write the file if there is enough that it lacks; a folder that cannot be written to does without."""
        if self._file is None or not self._known or self._new < _FEW or sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):
            _write(self._file, zlib.compress(marshal.dumps((_recipe(), self._known)), 1))
        self._new = 0


def parsed(pack: Path) -> dict[str, Any]:
    """The TOML of a pack, read from what was kept of it while its words are the same."""
    text = pack.read_text("utf-8")
    version = (sys.version, hashlib.sha256(text.encode()).hexdigest())
    file = _file_of(pack, "source")
    with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
        kept, source = marshal.loads(file.read_bytes())
        if kept == version:
            return dict(source)
    source = tomllib.loads(text)
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError, ValueError):  # a date, which nobody needs here, cannot be kept
            _write(file, marshal.dumps((version, source)))
    return source


def _file_of(pack: Path, kind: str = "patterns") -> Path:
    return pack.parent / "__pycache__" / f"{pack.stem}.{sys.implementation.cache_tag}.{kind}"


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as written:
        written.write(data)
    Path(written.name).replace(file)  # the others see the old file or the new one


def _recipe() -> tuple[str, int, int]:
    import _sre  # type: ignore[import-not-found]

    return sys.version, _sre.MAGIC, _sre.CODESIZE


def _read(file: Path) -> dict[str, Any]:
    try:
        recipe, known = marshal.loads(zlib.decompress(file.read_bytes()))
        return dict(known) if recipe == _recipe() else {}
    except (OSError, ValueError, EOFError, TypeError, zlib.error):  # missing, torn, or of another interpreter
        return {}


def _taken_apart(text: str) -> tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]:
    """What re.compile hands to the matcher."""
    from re import _compiler, _parser  # type: ignore[attr-defined]

    parsed = _parser.parse(text, 0)
    state = parsed.state
    names: list[str | None] = [None] * state.groups
    for name, number in state.groupdict.items():
        names[number] = name
    code = array("I", _compiler._code(parsed, 0)).tobytes()
    return state.flags, code, state.groups - 1, dict(state.groupdict), tuple(names)


def _restored(text: str, parts: tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]) -> re.Pattern[str]:
    import _sre

    flags, code, groups, by_name, names = parts
    pattern: re.Pattern[str] = _sre.compile(text, flags, array("I", code).tolist(), groups, by_name, names)
    return pattern
