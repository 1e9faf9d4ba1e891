"""The global options, and the settings in force under them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from assistant.settings import LoadedSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was given before the command."""

    config: Path | None = None
    data_dir: Path | None = None
    owner: str | None = None
    verbose: bool = False


def options_of(ctx: typer.Context) -> Options:
    return ctx.find_object(Options) or Options()


def load(ctx: typer.Context) -> "LoadedSettings":
    """The settings in force for this command; raises ConfigError."""
    import os

    from assistant.settings import load_settings
    from assistant.sources import Given

    options = options_of(ctx)
    cwd = Path.cwd()
    given = {}
    if options.data_dir is not None:  # typed in this folder, so meant from this folder
        given["data_dir"] = Given(str(cwd / options.data_dir), "option --data-dir")
    if options.owner is not None:
        given["owner"] = Given(options.owner, "option --owner")
    return load_settings(options.config, os.environ, cwd, options=given)
