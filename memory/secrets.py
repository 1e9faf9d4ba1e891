"""Recognises credentials, so that they are not stored as facts or written to logs."""

import re

_WORD_BEFORE = (
    r"(?:password|passwd|passphrase|passcode|pin(?:\s*code)?|secret|token|api[\s_-]?key|access[\s_-]?key|cvv|cvc|"
    r"contrase(?:ñ|n)a|clave(?:\s+(?:de|del|secreta|bancaria)\b)?|c[oó]digo\s+pin|parola\s+d'ordine|chiave\s+segreta|codice\s+pin|"
    r"密码|密碼|口令|密钥|密鑰|验证码|驗證碼)"
)
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("key", re.compile(r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}\b")),
    ("key", re.compile(r"\b(?:ghp|gho|ghs|github_pat|glpat|xox[abprs]|AKIA|ASIA|AIza|hf)[-_]?[A-Za-z0-9_-]{14,}\b")),
    ("key", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\b")),
    ("key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("token", re.compile(r"\b\d{6,12}:[A-Za-z0-9_-]{30,}\b")),
    (
        "password",
        re.compile(
            _WORD_BEFORE
            + r"(?:\s+(?:de|del|della|di|for|to|of|para|per)\s+[\w\s]{1,30}?)?"
            + r"\s*(?:is|are|es|è|e'|=|:|：|是|为|為)\s*[\"'“]?(?P<value>\S{3,})",
            re.IGNORECASE,
        ),
    ),
)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b")
_DIGITS = re.compile(r"(?<![\d.])(?:\d[ -]?){12,18}\d(?![\d.])")


def find_secret(text: str) -> str | None:
    """The kind of credential a text holds (key, token, password, card, iban), or None."""
    for kind, pattern in _PATTERNS:
        if pattern.search(text):
            return kind
    if any(_valid_iban(match[0]) for match in _IBAN.finditer(text.upper())):
        return "iban"
    if any(_valid_card(match[0]) for match in _DIGITS.finditer(text)):
        return "card"
    return None


def _valid_card(text: str) -> bool:
    digits = [int(character) for character in text if character.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [digit if index % 2 == 0 else sum(divmod(2 * digit, 10)) for index, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


def _valid_iban(text: str) -> bool:
    compact = text.replace(" ", "")
    if not 15 <= len(compact) <= 34:
        return False
    rearranged = compact[4:] + compact[:4]
    return int("".join(str(int(character, 36)) for character in rearranged)) % 97 == 1
