"""Where the memory of each person is, and how it is opened under the settings in force."""

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.errors import ConfigError
from assistant.sources import user_config_folder

if TYPE_CHECKING:
    from assistant.embeddings import OpenAICompatibleEmbedder
    from assistant.settings import LoadedSettings, Settings
    from assistant.summariser import ModelSummariser
    from memory import Memory
    from memory.language import LanguagePack
    from memory.ports import Clock


def person_file(settings: "Settings", owner: str | None = None) -> Path:
    """The file of a person; it need not exist."""
    return settings.data_dir / "people" / f"{owner or settings.owner}.db"


def known_people(settings: "Settings") -> list[str]:
    """The owners that have a file."""
    folder = settings.data_dir / "people"
    return sorted(file.stem for file in folder.glob("*.db") if file.is_file()) if folder.is_dir() else []


def copies_of(settings: "Settings", owner: str | None = None) -> list[Path]:
    """The older copies of a person's file."""
    return copies_beside(person_file(settings, owner))


def copies_beside(file: Path) -> list[Path]:
    """The copies of a person's file; those that bear another person's name are not among them."""
    mine = file.stem
    people = {mine, *(other.stem for other in file.parent.glob("*.db"))} if file.parent.is_dir() else {mine}
    folder = file.parent / "backups"
    found = []
    for copy in sorted(folder.glob("*.db*")) if folder.is_dir() else []:
        name = copy.name.lstrip(".")
        owners = [person for person in people if name.startswith((f"{person}-", f"{person}."))]
        belongs = max(owners, key=len, default=mine)
        if copy.is_file() and belongs == mine and not name.endswith(("-wal", "-shm", "-journal")):
            found.append(copy)
    return found


def languages_folder(loaded: "LoadedSettings") -> Path | None:
    """Where the user's own language packs are: beside the file in force, or in the user's configuration folder."""
    if loaded.file is not None:
        return loaded.file.parent / "languages"
    folder = user_config_folder(os.environ, sys.platform)
    return folder / "olvido" / "languages" if folder else None


@asynccontextmanager
async def open_memory(
    loaded: "LoadedSettings",
    *,
    owner: str | None = None,
    clock: "Clock | None" = None,
    summariser: "ModelSummariser | None" = None,
    packs: "Mapping[str, LanguagePack] | None" = None,
) -> "AsyncIterator[Memory]":
    """The memory of a person, the owner by default; its file is created if need be."""
    from memory import Memory
    from memory.ports import system_clock

    settings = loaded.settings
    embedder = person_embedder(settings)
    try:
        async with Memory.open(
            person_file(settings, owner),
            clock=clock or system_clock,
            timezone=settings.timezone,
            embedder=embedder,
            summariser=summariser,
            packs=packs or language_packs(loaded),
            limits=settings.limits,
        ) as memory:
            if summariser is not None:
                summariser.memory = memory  # what it costs is this person's
            yield memory
    finally:
        if embedder is not None:
            await embedder.aclose()


def language_packs(loaded: "LoadedSettings") -> "dict[str, LanguagePack]":
    """The shipped language packs and the user's own."""
    from memory.language import load_packs

    folder = languages_folder(loaded)
    try:
        packs = dict(load_packs(folder))
    except OSError as exc:
        raise ConfigError(f"The language packs in {folder} cannot be read: {exc.strerror}.") from None
    if loaded.settings.language not in ("auto", *packs):
        origin = loaded.origins["language"]
        raise ConfigError(
            f"The settings cannot be used. language ({origin}): there is no pack for it. Use auto or one of "
            f"{', '.join(sorted(packs))}, or add a pack (docs/languages.md)."
        )
    return packs


def person_embedder(settings: "Settings") -> "OpenAICompatibleEmbedder | None":
    """None means the engine's own."""
    given = settings.embeddings
    if given.provider == "embedded":
        return None
    from assistant.embeddings import OpenAICompatibleEmbedder

    return OpenAICompatibleEmbedder(
        base_url=given.base_url,
        model=given.model,
        api_key=given.api_key.get_secret_value() if given.api_key else None,
        dimension=given.dimension,
        timeout_seconds=given.timeout_seconds,
        batch_texts=given.batch_texts,
        limits=settings.limits,
    )
