"""The menu of commands Telegram shows, in each language."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assistant.commands import HANDLERS, LEAVING
from assistant.logs import get_logger

if TYPE_CHECKING:
    from telegram import Bot

    from memory.language import LanguagePack

LONGEST = 256  # characters of a description
DEFAULT = "en"


async def set_menu(bot: "Bot", packs: "Mapping[str, LanguagePack]") -> None:
    """Registers the commands for everybody, and for those whose Telegram speaks a language we have texts in."""
    from telegram.error import BadRequest, InvalidToken

    try:
        await bot.set_my_commands(menu(packs, DEFAULT))
        for code, pack in packs.items():
            if len(code) == 2 and pack.commands:  # Telegram knows two-letter codes only
                await bot.set_my_commands(menu(packs, code), language_code=code)
    except (BadRequest, InvalidToken) as exc:  # refused, or a method the server does not have: one can talk without
        get_logger(part="telegram").warning("no_menu", reason=type(exc).__name__)


def menu(packs: "Mapping[str, LanguagePack]", code: str) -> list[tuple[str, str]]:
    """Names and descriptions, /start first."""
    english, pack = packs[DEFAULT], packs[code]
    names = [name for name in HANDLERS if name not in LEAVING]
    return [(name, (pack.commands.get(name) or english.commands.get(name) or name)[:LONGEST]) for name in names]
