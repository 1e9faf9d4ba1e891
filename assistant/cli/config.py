"""``olvido config``: see the settings in force, and write a file to change them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assistant.cli.options import load, options_of
from assistant.cli.output import print_json, print_table
from assistant.errors import ConfigError

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings

app = typer.Typer(help="See the settings in force, or write a file to change them.", no_args_is_help=True)

MASKED = "set (masked)"


@app.command()
def show(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for other programs.")] = False,
) -> None:
    """Every setting, its value, and where it was set. Secrets are masked."""
    loaded = load(ctx)
    values = shown_values(loaded)
    if as_json:
        settings = {key: {"value": value, "from": _origin(loaded, key)} for key, value in values.items()}
        print_json({"file": None if loaded.file is None else str(loaded.file), "settings": settings})
    else:
        rows = [(key, _cell(value), _origin(loaded, key)) for key, value in values.items()]
        print_table(("key", "value", "from"), rows)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The file to write.", metavar="PATH")] = Path("olvido.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a configuration file with every setting, explained and commented out."""
    from assistant.example import render_example

    exclusive = os.O_TRUNC if force else os.O_EXCL
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | exclusive, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o600)  # it will hold secrets, also where the file was there before
            file.write(render_example())
    except FileExistsError:
        raise ConfigError(f"{path} exists already. Name another file, or replace it with --force.") from None
    except OSError as exc:
        raise ConfigError(f"{path} cannot be written: {exc.strerror}. Name another file.") from None
    typer.echo(f"Wrote {path}. Remove the # before a key to change it.")


@app.command()
def path(ctx: typer.Context) -> None:
    """The configuration file in force."""
    from assistant.sources import find_file

    file = find_file(options_of(ctx).config, os.environ, Path.cwd())
    if file is None:
        typer.echo("No configuration file is in force. Write one with: olvido config init", err=True)
    else:
        typer.echo(file)


def shown_values(loaded: "LoadedSettings") -> dict[str, Any]:
    """Every key with a value fit for showing; the entries of a table one by one."""
    from assistant.settings import setting_keys

    values: dict[str, Any] = {}
    for key in setting_keys():
        value: Any = loaded.settings
        for name in key.split("."):
            value = getattr(value, name)
        if isinstance(value, dict) and value:
            values |= {f"{key}.{name}": _shown(inner) for name, inner in value.items()}
        else:
            values[key] = _shown(value)
    return values


def _origin(loaded: "LoadedSettings", key: str) -> str:
    return loaded.origins.get(key, "default")


def _shown(value: Any) -> Any:
    from pydantic import SecretStr

    if isinstance(value, SecretStr):
        return MASKED
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and "://" in value:
        scheme, rest = value.split("://", 1)
        return f"{scheme}://***@{rest.rpartition('@')[2]}" if "@" in rest else value
    return value


def _cell(value: Any) -> str:
    if value is None:
        return "not set"
    return "none" if value == {} else str(value)
