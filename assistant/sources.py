"""Where settings come from: the file in force, the environment, and what each of them sets.

Nothing here knows which settings exist; the keys are handed in. Values are only carried, never put into a message.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from assistant.errors import ConfigError

PREFIX = "OLVIDO_"
FILE_NAME = "olvido.toml"
FILE_VARIABLE = "OLVIDO_CONFIG"
_NAME = re.compile(r'"?(?:[a-z]{1,20}(?:[_-][a-z]{1,20}){0,4}|-?\d{1,19})"?')


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One thing that can be set, named as in the file: ``model.api_key``."""

    name: str
    default: object
    description: str
    example: object = None
    choices: tuple[str, ...] = ()
    rule: str | None = None
    number: type[int] | type[float] | None = None
    table: bool = False

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper().replace(".", "__")


@dataclass(frozen=True, slots=True)
class Given:
    """A value somebody set, and where."""

    value: object
    origin: str


def find_file(config: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The configuration file in force; one that was asked for by name has to exist."""
    named = config or (Path(environ[FILE_VARIABLE]) if environ.get(FILE_VARIABLE) else None)
    if named is not None:
        path = cwd / expand_home(named, environ)
        if not _exists(path):
            asked = "--config" if config else FILE_VARIABLE
            raise ConfigError(
                f"{path} does not exist. Correct {asked}, or write the file with: olvido config init PATH"
            )
        return path
    candidates = [cwd / FILE_NAME]
    folder = user_config_folder(environ, sys.platform)
    if folder is not None:
        candidates.append(folder / "olvido" / FILE_NAME)
    return next((path for path in candidates if _exists(path)), None)


def user_config_folder(environ: Mapping[str, str], platform: str) -> Path | None:
    """Where this system keeps a user's configuration; None without a home."""
    chosen = Path(environ.get("XDG_CONFIG_HOME") or ".")
    if chosen.is_absolute():  # the specification says to ignore a relative one
        return chosen
    home = environ.get("HOME")
    if not home:
        return None
    return Path(home) / ("Library/Application Support" if platform == "darwin" else ".config")


def expand_home(path: Path, environ: Mapping[str, str]) -> Path:
    """``~`` by the given environment; left as it is without a home."""
    home = environ.get("HOME")
    return Path(home, *path.parts[1:]) if home and path.parts[:1] == ("~",) else path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder that may not be looked into holds no file for us
        return False


def read_file(path: Path) -> dict[str, object]:
    """The parsed file. The parser's own words are not repeated: they may quote the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text. Save it as UTF-8.") from None
    try:
        return tomllib.loads(text)
    except ValueError as exc:
        at = re.search(r"\(at line (\d+), column (\d+)\)$", str(exc))
        line = at[1] if at else text.rstrip("\n").count("\n") + 1
        column = f", column {at[2]}" if at else ""
        raise ConfigError(
            f"{path}, line {line}{column}: this is not valid TOML. Text needs quotes, and a key is set only once."
        ) from None


def from_file(
    table: Mapping[str, object], path: Path, keys: Mapping[str, Key], problems: list[str]
) -> dict[str, Given]:
    """What the file sets; keys that do not exist are added to the problems."""
    given: dict[str, Given] = {}
    for name, value in _flatten(table, _tables(keys)):
        if _known(name, keys):
            given[name] = Given(value, str(path))
        elif name in _tables(keys):
            problems.append(f"{name} ({path}): this is a table. Write [{name}] on a line of its own, its keys below.")
        else:
            meant = _suggestion(name, [*keys, *_tables(keys)])
            problems.append(f"{shown(name)} ({path}): there is no such setting.{meant}")
    return given


def shown(name: str) -> str:
    """A key as a message may show it: what does not look like a name may be a secret typed in the wrong place."""
    parts = [part if _NAME.fullmatch(part) else "…" for part in name.split(".")]
    return ".".join(parts)


def from_environment(environ: Mapping[str, str], keys: Mapping[str, Key], problems: list[str]) -> dict[str, Given]:
    """What the OLVIDO_ variables set; an empty variable counts as not set."""
    given: dict[str, Given] = {}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or variable == FILE_VARIABLE:
            continue
        name = ".".join(_quoted(part) for part in variable.removeprefix(PREFIX).lower().split("__"))
        if _known(name, keys):
            if text:
                given[name] = Given(_typed(text, keys.get(name)), f"environment {variable}")
        elif name in _tables(keys):
            problems.append(f"{name} (environment {variable}): this is a table. Set its keys, as in {variable}__KEY.")
        else:
            meant = _suggestion(variable, [key.variable for key in keys.values()])
            problems.append(f"{name} (environment {variable}): there is no such setting.{meant}")
    return given


def customary(environ: Mapping[str, str], names: Mapping[str, tuple[str, ...]]) -> dict[str, Given]:
    """What variables known from other programs set, by key; the caller says which of them apply."""
    return {
        key: Given(environ[variable], f"environment {variable}")
        for variable, keys in names.items()
        for key in keys
        if environ.get(variable)
    }


def nested(given: Mapping[str, Given]) -> dict[str, object]:
    """Dotted keys as the tables they stand for; no key is more than three parts deep."""
    tree: dict[str, object] = {}
    for name, entry in given.items():
        *tables, last = name.split(".", 2)
        branch = tree
        for table in tables:
            inner = branch.setdefault(table, {})
            assert isinstance(inner, dict)  # a table is never given a value of its own
            branch = inner
        branch[last] = entry.value
    return tree


def _flatten(table: Mapping[str, object], tables: set[str], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        key = prefix + _quoted(name)
        if isinstance(value, dict) and key in tables:
            yield from _flatten(value, tables, f"{key}.")
        else:
            yield key, value


def _quoted(name: str) -> str:
    """A key as the file writes it: quoted unless bare, so that a dot in it is no path and nothing is invisible."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _tables(keys: Mapping[str, Key]) -> set[str]:
    parents = {name.rpartition(".")[0] for name in keys} - {""}
    return parents | {name for name, key in keys.items() if key.table}


def _known(name: str, keys: Mapping[str, Key]) -> bool:
    if name in keys:
        return not keys[name].table
    return any(key.table and name.startswith(f"{key.name}.") for key in keys.values())


def _suggestion(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _typed(text: str, key: Key | None) -> object:
    """A variable is always text; one that should be a number and is not stays text, and validation says so."""
    if key is None or key.number is None:
        return text
    try:
        return key.number(text)
    except ValueError:
        return text
