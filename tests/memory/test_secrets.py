"""Credentials are recognised, in four languages; what only looks like one is not (section 6)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.secrets import find_secret

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def made(length: int, letters: str = LETTERS) -> str:
    """Nothing in this file is anybody's key; none stands in it as a whole either."""
    return "".join(random.Random(length).choices(letters, k=length))


SECRETS = {
    "key": [
        f"my key is sk-{made(40)}",
        f"sk-proj-{made(24)}-{made(20)}",
        f"use sk_live_{made(24)} for payments.",
        f"ghp_{made(36)}",
        f"here: github_pat_{made(22)}_{made(50)}",
        f"glpat-{made(20)}",
        f"xoxb-{made(12, '0123456789')}-{made(24)}",
        f"AKIA{made(16, 'ABCDEFGHIJ234567')} is the id",
        f"AIza{made(35)}",
        f"hf_{made(34)}",
        f"eyJ{made(20)}.{made(40)}.{made(30)}",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "-----BEGIN PRIVATE KEY-----",
    ],
    "token": [f"the bot is 123456789:{made(35)}", f"123456789:AA{made(33)}."],
    "password": [
        "my password is hunter2",
        "My password is sunshine",
        "my wifi password is bluehorse",
        "the wifi password is bluehorse.",
        "the password for the router is Tr0ub4dor&3",
        "password: opensesame",
        "Password = 'letmein'",
        "my bank password is purple monkey dishwasher",
        "my pin is 4821",
        "PIN: 4821",
        "my pin code is 0911",
        "the passcode is 77-12-9",
        "my card's cvv is 123",
        "my api key is 9f8e7d6c5b",
        "our passphrase is purpleMonkey",
        "mi contraseña es gatito",
        "la contraseña del wifi es CasaRoja22",
        "mi contrasena de netflix es peluche!",
        "mi clave del banco es 998877",
        "mi clave es rosita",
        "contraseña: perro123",
        "mi pin es 1234",
        "el código pin de la tarjeta es 5566",
        "la mia password è gattino",
        "la password del wifi è Ciao1234",
        "la password e' pippo99",
        "il mio pin è 4455",
        "il codice pin del bancomat è 1298",
        "la mia parola d'ordine è girasole",
        "我的密码是abc123",
        "密码：hunter2",
        "wifi密码是 88888888",
        "我的银行卡密码是123456",
        "密碼為 qwerty1",
        "验证码是 482913",
        "我的密码改成了 tiger2020",
    ],
    "card": [
        "4111 1111 1111 1111",
        "my card is 4111111111111111.",
        "4111-1111-1111-1111 12/27 123",
        "pay with 5500 0000 0000 0004, please",
        "3782 822463 10005",
        "6011000000000004",
        "mi tarjeta: 4012 8888 8888 1881",
        "2223 0031 2200 3222",
        "我的卡号是4111111111111111",
        "30569309025904",
    ],
    "iban": [
        "ES91 2100 0418 4502 0005 1332 is my iban",
        "es9121000418450200051332",
        "my account: DE89370400440532013000.",
        "GB29 NWBK 6016 1331 9268 19 then",
        "IT60X0542811101000000123456",
        "il mio IBAN è IT60 X054 2811 1010 0000 0123 456 grazie",
        "FR14 2004 1010 0505 0001 3M02 606",
        "NL91ABNA0417164300",
        "NO9386011117947",
    ],
}

INNOCENT = [
    "my phone is +54 9 11 5555 4321",
    "call me at 0039 333 123 4567",
    "my phone number is 4111 2222",
    "order number 1234567890123456",
    "order 4111111111111112 has not arrived",
    "tracking RR123456789ES",
    "we met on 2026-01-15 12:30:45",
    "20260115 is the date, 2026011512304599 the stamp",
    "my book has the ISBN 978-3-16-148410-0",
    "ISBN 9780306406157",
    "the password is required field",
    "the password is wrong",
    "the password field is mandatory",
    "is the password case-sensitive?",
    "I forgot my password",
    "my password is too long",
    "what is the password policy?",
    "my pin cushion is red",
    "I collect pins",
    "a pin is stuck in my tyre",
    "the secret is patience",
    "my secret is that I love jazz",
    "the token is expired",
    "la clave es practicar todos los días",
    "la clave del éxito es la paciencia",
    "la contraseña es obligatoria",
    "il segreto è non arrendersi",
    "la password è sbagliata",
    "密码是必填项",
    "密码不对",
    "我忘了密码是什么",
    "IBAN numbers start with two letters, like ES91 or IT60",
    "ES91 2100 0418 4502 0005 1333",
    "Asia-Pacific-headquarters-of-the-company",
    "ASIA-pacific-headquarters",
    "the sk-learn-documentation-of-scikit is good",
    "pi is 3.14159265358979323846",
    "42 is the answer",
    "my team has 5 people and a budget of 1 000 000 000 000 000",
    "https://example.org/issues/1234567890",
    "1111 1111 1111 1111",
    "my door is at 48.8583701, 2.2944813",
]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in SECRETS.items() for text in texts])
def test_a_credential_is_recognised_as_what_it_is(kind: str, text: str) -> None:
    found = find_secret(text)
    assert found == kind or (found is not None and kind == "key")


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_like_a_credential_is_none(text: str) -> None:
    assert find_secret(text) is None


@pytest.mark.parametrize("kind", SECRETS)
def test_a_credential_is_recognised_in_the_midst_of_other_words(kind: str) -> None:
    for text in SECRETS[kind]:
        assert find_secret(f"By the way, I live in Rome; {text}") is not None, text


@given(st.text(max_size=200))
def test_any_text_can_be_looked_at(text: str) -> None:
    assert find_secret(text) in (None, "key", "token", "password", "card", "iban")
