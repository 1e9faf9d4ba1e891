"""Recognises credentials, so that they are not stored as facts or written to logs."""

import re

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("key", re.compile(r"\b(?:sk|pk|rk)[-_](?=[\w-]{0,80}\d)(?:[A-Za-z0-9]{1,16}[-_]){0,4}[A-Za-z0-9]{16}")),
    ("key", re.compile(r"\b(?:ghp|gho|ghs|ghu|github_pat|glpat|xox[abprs]|hf)[-_][A-Za-z0-9_-]{14,}")),
    ("key", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}")),
    ("key", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    ("key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("token", re.compile(r"(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,}")),
)

# "My password for the bank is hunter2", "la clave del wifi es ...", "密码是...". Names of what only sometimes is a
# credential (the key to success, a secret, a token of love) are weak: a plain word after them is none.
_STRONG = r"(?<![A-Za-z])(?:password|passwd|passphrase|passcode|contrase(?:ñ|n)a|parola\s+d['’]ordine)|密码|密碼|口令"
_WEAK = (
    r"(?<![A-Za-z])(?:pin(?:\s*(?:code|number))?|secret|token|(?:api|access|secret)[\s_-]?key|cvv|cvc|clave|c[oó]digo(?:\s+pin)?|"
    r"codice(?:\s+pin)?|chiave)|密钥|密鑰|验证码|驗證碼"
)
_OF_WHAT = r"(?:\s+(?:de|del|della|di|for|to|of|on|para|per|secret[ao]|segret[ao]|bancari[ao])\b[\w\s'’.-]{0,40}?)?"
_IS = (
    r"\s*(?:(?:\bis|\bwas|\bwill\s+be|['’]s|\bes|\bser[aá]|\bsar[aà]|\bè|\be['’])(?=\s)"
    r"(?:\s+(?:now|ahora|adesso|ora)\b)?|[:=：]|现在是|現在是|改成了?|改为|改為|是|为|為)\s*"
)
_SAID = re.compile(
    rf"(?P<mine>\b(?:my|our|mi|nuestra|mia|mio|nostra)\s+(?:\S{{1,30}}\s+){{0,2}}?|我[^\s，。]{{0,8}}?)?"
    rf"(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK})){_OF_WHAT}{_IS}"
    rf"(?P<open>[\"'“「《]?)(?P<value>[^\s，。；！？、]{{3,}})(?=(?P<rest>\s*\w?))",
    re.IGNORECASE,
)
# what people say of passwords in general
_NOT_A_VALUE = frozenset(
    """
    a an the that this it to too so not no now never always still only also very what when where how why who which
    required needed missing mandatory optional wrong right correct incorrect valid invalid expired weak strong safe
    secure insecure hidden encrypted hashed stored saved reset changed different same case-sensitive important long
    short easy hard secret unknown lost stolen empty blank being going supposed something somewhere ready gone
    un una el la lo los las que de en muy más mas tan tu su no ya siempre nunca obligatoria obligatorio necesaria
    necesario incorrecta incorrecto correcta correcto inválida invalida válida valida débil debil fuerte segura
    seguro larga corta demasiado diferente distinta distinto importante secreta secreto fácil facil difícil dificil
    il lo gli le che di in molto più piu così cosi troppo sempre mai non obbligatoria obbligatorio necessaria
    necessario sbagliata sbagliato errata errato corretta corretto scaduta scaduto debole forte sicura sicuro
    lunga lungo corta corto diversa diverso importante segreta segreto facile difficile richiesta richiesto
    """.split()  # noqa: SIM905 (a list of so many words would be a page of quotes)
)
_NOT_A_VALUE_ZH = re.compile(
    r"必|不|错|錯|对|對|什么|什麼|多少|啥|几|幾|一|很|太|空|正确|正確|无效|無效|过期|過期|安全|重要|需要|怎|谁|誰|哪|否|忘|"
    r"要|由|用"
)

_GROUPS = re.compile(r"(?<![\d.])\d+(?:[ -]\d+)*(?!\.?\d)")
_CARDS = (  # how the numbers of a brand begin, and how long they are
    (re.compile(r"4"), (13, 16, 19)),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"3(?:0[0-5]|[689])"), (14,)),
    (re.compile(r"35(?:2[89]|[3-8])|6(?:011|4[4-9]|[25])|5[0678]|6[37]"), (16, 17, 18, 19)),
)

_IBAN = re.compile(r"(?<![A-Z0-9])(?P<country>[A-Z]{2})\d{2}(?: ?[A-Z0-9]){11,30}")
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE IL IQ TL SO",
        24: "AD CZ ES MD PK RO SA SE SK TN VG DZ",
        25: "LY PT ST",
        26: "IS TR",
        27: "FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HU LB PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}


def find_secret(text: str) -> str | None:
    """The kind of credential a text holds (key, token, password, card, iban), or None."""
    for kind, pattern in _PATTERNS:
        if pattern.search(text):
            return kind
    if any(_is_given_away(match) for match in _SAID.finditer(text)):
        return "password"
    if any(_valid_iban(match) for match in _IBAN.finditer(text.upper())):
        return "iban"
    if any(_has_card(match[0]) for match in _GROUPS.finditer(text)):
        return "card"
    return None


def _is_given_away(match: re.Match[str]) -> bool:
    """Whether what follows "my password is" is one, and not something said of passwords."""
    value = match["value"].strip(".,;:!?\"'”」》)")
    if len(value) < 3 or value.lower() in _NOT_A_VALUE or _NOT_A_VALUE_ZH.match(value):
        return False
    if match["open"] or not value.isalpha() or (value[1:] != value[1:].lower() and value.isascii()):
        return True  # quoted, or with digits, signs or capitals inside
    if match["weak"]:
        return bool(match["mine"]) and match["weak"].lower() not in ("secret", "token", "codice", "código", "codigo")
    said_last = not match["rest"].strip() or match["value"] != value
    return bool(match["mine"]) or said_last


def _has_card(text: str) -> bool:
    """Whether a card number begins with one of the groups of digits; an expiry date may follow it."""
    groups = re.findall(r"\d+", text)
    for start in range(len(groups)):
        digits = ""
        for group in groups[start:]:
            digits += group
            if len(digits) > 19:
                break
            if any(len(digits) in lengths and begin.match(digits) for begin, lengths in _CARDS) and _luhn(digits):
                return True
    return False


def _luhn(text: str) -> bool:
    digits = [int(character) for character in text]
    doubled = [digit if index % 2 == 0 else sum(divmod(2 * digit, 10)) for index, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


def _valid_iban(match: re.Match[str]) -> bool:
    compact = match[0].replace(" ", "")[: _IBAN_LENGTHS.get(match["country"], 0)]
    if len(compact) < _IBAN_LENGTHS.get(match["country"], 99):
        return False
    rearranged = compact[4:] + compact[:4]
    return int("".join(str(int(character, 36)) for character in rearranged)) % 97 == 1
