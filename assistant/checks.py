"""What is wrong with the settings given, in words for the user that never hold a value."""

import math
from collections.abc import Mapping

from pydantic_core import ErrorDetails

from assistant.providers import KEY_NEEDED, KEY_VARIABLES, OPENAI_URL, provider_and_model
from assistant.sources import Given, Key, shown

# by pydantic's type of error; its own messages are not used because many quote the value
SENTENCES: Mapping[str, str] = {
    "int_type": "use a whole number",
    "float_type": "use a number",
    "finite_number": "use a number",
    "string_type": "use text in quotes",
    "string_too_short": "use text that is not empty, or leave the key out",
    "path_type": "use the path of a folder, in quotes",
    "dict_type": "write a table",
    "greater_than": "use a number above 0",
    "greater_than_equal": "use a number that is not below 0",
    "less_than_equal": "use a smaller number",
}


def invalid(error: ErrorDetails, given: Mapping[str, Given]) -> str:
    """One of pydantic's errors as a problem: the key, where it was set, what to do."""
    key = ".".join(str(part) for part in error["loc"] if part != "[key]")
    if error["type"] == "setting":
        sentence = error["msg"]  # our own validators' words
    elif error["type"] == "literal_error":
        sentence = f"use one of {error['ctx']['expected']}"
    else:
        sentence = SENTENCES.get(error["type"], "this cannot be used here")
    return problem(key, given, sentence)


def problem(key: str, given: Mapping[str, Given], sentence: str) -> str:
    """A problem as the user reads it."""
    origin = given[key].origin if key in given else "not set"
    return f"{shown(key)} ({origin}): {sentence}."


def limits_out_of_range(given: Mapping[str, Given], keys: Mapping[str, Key]) -> list[str]:
    """Limits are positive but for log odds and where 0 turns something off, as their explanation says.

    Those measured from 0 to 1 stay within.
    """
    problems = []
    for name, entry in given.items():
        value = entry.value
        if not name.startswith("limits.") or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if keys[name].description.endswith("0 to 1."):
            if not 0 <= value <= 1:
                problems.append(problem(name, given, "use a number from 0 to 1"))
        elif keys[name].description.endswith("log odds."):
            if not math.isfinite(value):
                problems.append(problem(name, given, "use a number"))
        elif value == 0 and "; 0: " in keys[name].description:
            continue
        elif not 0 < value < 2**53 or math.isnan(value):
            problems.append(problem(name, given, "use a positive number"))
    return problems


def missing(given: Mapping[str, Given], embeddings_url: str) -> list[str]:
    """What the chosen providers cannot do without."""
    problems = []
    provider = chosen(given, "model.provider")
    if provider in KEY_NEEDED and "model.api_key" not in given:
        hint = f"model.provider needs a key: set {KEY_VARIABLES[provider]} or OLVIDO_MODEL__API_KEY"
        problems.append(problem("model.api_key", given, hint))
    for other in fallback_providers(given):
        if other in KEY_NEEDED and f"model.fallback_keys.{other}" not in given:
            hint = f"model.fallbacks names {other}, which needs a key: set {KEY_VARIABLES[other]} or this"
            problems.append(problem(f"model.fallback_keys.{other}", given, hint))
    if provider == "custom" and "model.base_url" not in given:
        problems.append(problem("model.base_url", given, "model.provider needs an address: set it"))
    at_openai = embeddings_url.rstrip("/") == OPENAI_URL
    if chosen(given, "embeddings.provider") == "openai" and at_openai and "embeddings.api_key" not in given:
        hint = "embeddings.provider needs a key: set OPENAI_API_KEY or OLVIDO_EMBEDDINGS__API_KEY"
        problems.append(problem("embeddings.api_key", given, hint))
    return problems


def fallback_providers(given: Mapping[str, Given]) -> list[str]:
    """The other providers whose models are asked when the first one fails."""
    value = given["model.fallbacks"].value if "model.fallbacks" in given else ()
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
    named = [provider_and_model(name.strip())[0] for name in names if isinstance(name, str)]
    return sorted({provider for provider in named if provider and provider != chosen(given, "model.provider")})


def names_alike(given: Mapping[str, Given], default_owner: str) -> list[str]:
    """Owners that differ in capitals only: on some systems they would share one file."""
    owner = chosen(given, "owner") or default_owner
    spellings = {owner.casefold(): owner}
    problems = []
    for key in given:
        name = chosen(given, key) if key.startswith("telegram.people.") else ""
        if name and spellings.setdefault(name.casefold(), name) != name:
            problems.append(problem(key, given, "another owner differs only in capitals: write both the same way"))
    return problems


def groups_apart(given: Mapping[str, Given], default_owner: str) -> list[str]:
    """Groups, whose ids are below 0, that would share the memory of a person or of another group."""
    people = {"owner": chosen(given, "owner") or default_owner}
    people |= {key: chosen(given, key) for key in given if key.startswith("telegram.people.")}
    names = list(people.values())
    return [
        problem(key, given, "a group has a memory of its own: give it a name nobody else has")
        for key, name in people.items()
        if key.startswith("telegram.people.-") and names.count(name) > 1
    ]


def report(problems: list[str]) -> str:
    """All of it as one text."""
    if len(problems) == 1:
        return f"The settings cannot be used. {problems[0]}"
    listed = "\n".join(f"- {line}" for line in problems)
    return f"The settings cannot be used, for {len(problems)} reasons:\n{listed}"


def chosen(given: Mapping[str, Given], key: str) -> str:
    """The text given for a key; empty when there is none."""
    value = given[key].value if key in given else ""
    return value if isinstance(value, str) else ""
