"""Takes secrets out of text: those that were configured, and whatever looks like one."""

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

REDACTED = "[redacted]"
SHORTEST = 4  # shorter ones are placeholders for servers that want any key; taking them out would shred every line

LOOKS_SECRET = re.compile(
    r"""
      (?P<bearer>\bbearer\s+)[\w.~+/=-]+               # Authorization headers
    | (?P<user>://)[^\s/@]+(?=@)                       # https://user:password@host
    | \bsk-[\w-]{6,}                                   # API keys
    | (?<!\d)\d{5,}(?::|%3A)(?:AA[\w-]{4,}|[\w-]{30,}) # Telegram bot tokens, also inside a URL
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


class Redactor:
    """Made once with the configured secrets, then called with each text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._exact = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        if self._exact is not None:
            text = self._exact.sub(REDACTED, text)
        return LOOKS_SECRET.sub(_replacement, text)


def _forms(secret: str) -> set[str]:
    """As it is, as in a URL, as in JSON, and as Python shows it."""
    return {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]}


def _replacement(match: re.Match[str]) -> str:
    return (match["bearer"] or match["user"] or "") + REDACTED
