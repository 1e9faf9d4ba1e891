"""Words that were forgotten, in files beside the person's own: finds them, and takes them out of the logs."""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

SHORTEST = 5  # bytes; a shorter text stands by chance in every file
BLOCK = 1 << 20


def needles(texts: Iterable[str]) -> list[bytes]:
    """The forms in which texts can stand in a file."""
    forms = {
        form for text in texts for form in (text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1])
    }
    return sorted(
        {form.encode("utf-8", "replace") for form in forms if len(form.encode("utf-8", "replace")) >= SHORTEST}
    )


def files_holding(texts: Sequence[str], files: Iterable[Path]) -> list[Path]:
    """Those of the files in which one of the texts stands, byte for byte; what cannot be read is left out."""
    wanted = needles(texts)
    found = []
    for file in files:
        with suppress(OSError):
            if _holds(file, wanted):
                found.append(file)
    return found


def _holds(file: Path, wanted: Sequence[bytes]) -> bool:
    overlap = max(map(len, wanted), default=1) - 1
    tail = b""
    with file.open("rb") as stream:
        while block := stream.read(BLOCK):
            piece = tail + block
            if any(needle in piece for needle in wanted):
                return True
            tail = piece[-overlap:] if overlap else b""
    return False


def files_below(folder: Path) -> list[Path]:
    """Every file in a folder, however deep."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def history_file(data_dir: Path) -> Path:
    """What was typed in the terminal, for the arrow keys."""
    return data_dir / "repl_history"


def scrub(data_dir: Path, texts: Sequence[str]) -> int:
    """Takes the lines that hold one of the texts out of the logs and of what was typed; how many went."""
    typed = history_file(data_dir)
    files = [
        *(files_below(data_dir / "logs") if (data_dir / "logs").is_dir() else []),
        *([typed] if typed.exists() else []),
    ]
    return _scrub(files, texts)


def _scrub(files: Sequence[Path], texts: Sequence[str]) -> int:
    wanted = [needle.decode().casefold() for needle in needles(texts)]
    gone = 0
    for file in files:
        with suppress(OSError):  # expired meanwhile, or not ours
            lines = file.read_bytes().splitlines(keepends=True)
            kept = [line for line in lines if not _says(line, wanted)]
            if len(kept) < len(lines):
                _overwrite(file, b"".join(kept))
                gone += len(lines) - len(kept)
    return gone


def _says(line: bytes, wanted: Sequence[str]) -> bool:
    folded = line.decode("utf-8", "replace").casefold()
    return any(needle in folded for needle in wanted)


def _overwrite(file: Path, data: bytes) -> None:
    """In place, so that no other file holds the words, not even for a moment."""
    with file.open("r+b") as stream:
        stream.write(data)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())
