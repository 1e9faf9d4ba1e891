"""Compiled patterns of the language packs, kept beside them as Python keeps compiled modules.

A pack has some hundred long patterns. To compile them takes a second or three, to read them back a few hundredths of
one. Whatever is wrong with the file, or with this interpreter's way of doing it: the pattern is simply compiled.
"""

import atexit
import contextlib
import marshal
import re
import sys
import tempfile
import zlib
from array import array
from pathlib import Path
from typing import Any

_FEW = 20  # so few new patterns are not worth writing the file again


class Patterns:
    """The patterns of one pack; those compiled anew are added to its file when the process ends."""

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
            return pattern
        return re.compile(text)

    def save(self) -> None:
        """Write the file if there is enough that it lacks; a folder that cannot be written to does without."""
        if self._file is None or not self._known or self._new < _FEW or sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._file.parent, delete=False) as file:
                file.write(zlib.compress(marshal.dumps((_recipe(), self._known)), 1))
            Path(file.name).replace(self._file)  # the others see the old file or the new one
        self._new = 0


def _file_of(pack: Path) -> Path:
    return pack.parent / "__pycache__" / f"{pack.stem}.{sys.implementation.cache_tag}.patterns"


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
