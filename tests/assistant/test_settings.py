"""Settings: what is in force, where it came from, and what the user reads when it makes no sense."""

import dataclasses
import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from assistant.errors import AssistantError, ConfigError
from assistant.example import render_example
from assistant.people import language_packs
from assistant.settings import LoadedSettings, load_settings, setting_keys
from assistant.sources import find_file, user_config_folder
from memory.limits import Limits

ROOT = Path(__file__).parents[2]
SECRET = "sk-zebra-quartz-0123456789"


def load(folder: Path, toml: str | None = None, **environ: str) -> LoadedSettings:
    if toml is not None:
        (folder / "olvido.toml").write_text(toml, encoding="utf-8")
    return load_settings(None, environ, folder)


def refusal(folder: Path, toml: str | None = None, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, toml, **environ)
    return str(caught.value)


# What is in force


def test_without_file_and_environment_everything_is_default(tmp_path):
    loaded = load(tmp_path)
    assert loaded.file is None
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.settings.limits == Limits()
    assert loaded.settings.model.provider == "embedded"
    assert loaded.settings.telegram.people == {}


def test_the_file_wins_over_the_default_and_the_environment_over_the_file(tmp_path):
    toml = '[limits]\nfacts_tokens = 90\npinned_tokens = 30\n[logs]\nlevel = "debug"'
    loaded = load(tmp_path, toml, OLVIDO_LIMITS__FACTS_TOKENS="120")
    assert loaded.settings.limits == dataclasses.replace(Limits(), facts_tokens=120, pinned_tokens=30)
    assert loaded.origins["limits.facts_tokens"] == "environment OLVIDO_LIMITS__FACTS_TOKENS"
    assert loaded.origins["limits.pinned_tokens"] == str(tmp_path / "olvido.toml")
    assert loaded.origins["limits.fact_tokens"] == "default"


@pytest.mark.parametrize("key", setting_keys().values(), ids=lambda key: key.name)
def test_every_key_can_be_set_in_the_environment(tmp_path, key):
    value = key.example if key.default is None else key.default
    variable, expected, text = key.variable, key.name, str(value)
    if key.table:
        name, text = {"telegram.people": ("7", "ana"), "model.fallback_keys": ("openai", "key")}[key.name]
        variable, expected = f"{key.variable}__{name.upper()}", f"{key.name}.{name}"
    loaded = load(tmp_path, **{variable: text})
    assert loaded.origins[expected] == f"environment {variable}"


@pytest.mark.parametrize("name", ["EPISODE_TRACE_DAYS", "EPISODE_ARCHIVED_DAYS"])
def test_e4_zero_turns_off_what_it_says_it_turns_off(tmp_path, name):
    loaded = load(tmp_path, **{f"OLVIDO_LIMITS__{name}": "0"})
    assert getattr(loaded.settings.limits, name.lower()) == 0
    with pytest.raises(ConfigError, match="use a positive number"):
        load(tmp_path, **{f"OLVIDO_LIMITS__{name}": "-1"})


def test_environment_text_becomes_the_number_the_limit_is(tmp_path):
    loaded = load(tmp_path, OLVIDO_LIMITS__SAME_SIMILARITY="0.5", OLVIDO_EMBEDDINGS__DIMENSION="256")
    assert loaded.settings.limits.same_similarity == 0.5
    assert loaded.settings.embeddings.dimension == 256


def test_text_is_no_number_in_the_file(tmp_path):
    assert "limits.facts_tokens" in refusal(tmp_path, '[limits]\nfacts_tokens = "120"')


def test_an_empty_variable_counts_as_not_set(tmp_path):
    loaded = load(tmp_path, OLVIDO_OWNER="", TELEGRAM_BOT_TOKEN="")
    assert loaded.settings.owner == "me"
    assert loaded.settings.telegram.token is None


def test_people_of_the_file_and_of_the_environment_are_both_let_in(tmp_path):
    loaded = load(tmp_path, '[telegram.people]\n42 = "ana"\n-100 = "家"', OLVIDO_TELEGRAM__PEOPLE__7="bo")
    assert loaded.settings.telegram.people == {42: "ana", -100: "家", 7: "bo"}


# Customary variables


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("kimi", "MOONSHOT_API_KEY"),
        ("openrouter", "OPENROUTER_API_KEY"),
    ],
)
def test_each_provider_reads_its_customary_key(tmp_path, provider, variable):
    loaded = load(tmp_path, f'[model]\nprovider = "{provider}"', **{variable: SECRET})
    assert loaded.settings.model.api_key.get_secret_value() == SECRET
    assert loaded.origins["model.api_key"] == f"environment {variable}"
    assert loaded.settings.embeddings.api_key is None


def test_a_custom_server_takes_the_openai_variables(tmp_path):
    environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "http://localhost:9/v1/"}
    loaded = load(tmp_path, '[model]\nprovider = "custom"', **environ)
    assert loaded.settings.model.api_key.get_secret_value() == SECRET
    assert loaded.settings.model.url == "http://localhost:9/v1"


def test_a_key_is_not_handed_to_a_provider_it_is_not_for(tmp_path):
    for provider in ("embedded", "ollama", "llamacpp", "lmstudio"):
        toml = f'[model]\nprovider = "{provider}"'
        loaded = load(tmp_path, toml, OPENAI_API_KEY=SECRET, MOONSHOT_API_KEY=SECRET, OPENAI_BASE_URL="http://h/v1")
        assert loaded.settings.model.api_key is None
        assert loaded.settings.model.base_url is None
    assert "model.api_key" in refusal(tmp_path, '[model]\nprovider = "kimi"', OPENAI_API_KEY=SECRET)


def test_embeddings_take_the_openai_variables_only_when_openai_embeds(tmp_path):
    environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "http://localhost:9/v1"}
    assert load(tmp_path, **environ).settings.embeddings.api_key is None
    loaded = load(tmp_path, '[embeddings]\nprovider = "openai"', **environ)
    assert loaded.settings.embeddings.api_key.get_secret_value() == SECRET
    assert loaded.settings.embeddings.base_url == "http://localhost:9/v1"
    assert loaded.settings.model.api_key is None


def test_our_own_variable_wins_over_the_customary_one_and_that_over_the_file(tmp_path):
    toml = '[telegram]\ntoken = "1:file"'
    assert load(tmp_path, toml, TELEGRAM_BOT_TOKEN="1:custom").settings.telegram.token.get_secret_value() == "1:custom"
    loaded = load(tmp_path, toml, TELEGRAM_BOT_TOKEN="1:custom", OLVIDO_TELEGRAM__TOKEN="1:own")
    assert loaded.settings.telegram.token.get_secret_value() == "1:own"


# The file


def test_the_file_named_wins_over_the_variable_and_that_over_the_folders(tmp_path):
    home, named, pointed = tmp_path / "home", tmp_path / "named.toml", tmp_path / "pointed.toml"
    users = user_config_folder({"HOME": str(home)}, "linux") / "olvido" / "olvido.toml"
    users.parent.mkdir(parents=True)
    local = tmp_path / "olvido.toml"
    for file in (users, local, named, pointed):
        file.touch()
    environ = {"XDG_CONFIG_HOME": str(home / ".config"), "OLVIDO_CONFIG": "pointed.toml"}
    assert find_file(Path("named.toml"), environ, tmp_path) == named
    assert find_file(None, environ, tmp_path) == pointed
    del environ["OLVIDO_CONFIG"]
    assert find_file(None, environ, tmp_path) == local
    local.unlink()
    assert find_file(None, environ, tmp_path) == users
    users.unlink()
    assert find_file(None, environ, tmp_path) is None


def test_the_users_folder_follows_the_system():
    assert user_config_folder({"HOME": "/h"}, "linux") == Path("/h/.config")
    assert user_config_folder({"HOME": "/h"}, "darwin") == Path("/h/Library/Application Support")
    assert user_config_folder({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "darwin") == Path("/x")
    assert user_config_folder({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "linux") == Path("/h/.config")
    assert user_config_folder({}, "linux") is None


def test_a_named_file_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.toml does not exist.*--config"):
        load_settings(Path("absent.toml"), {}, tmp_path)
    assert "OLVIDO_CONFIG" in refusal(tmp_path, OLVIDO_CONFIG="absent.toml")


@pytest.mark.parametrize(
    ("toml", "line"),
    [
        (f'owner = "me"\n[model]\napi_key = {SECRET}\n', 3),
        (f'owner = "me"\napi_key = "{SECRET}', 2),
        ("a = 1\na = 2", 2),
    ],
)
def test_broken_toml_gives_file_and_line_and_never_the_text(tmp_path, toml, line):
    text = refusal(tmp_path, toml)
    assert f"{tmp_path / 'olvido.toml'}, line {line}" in text
    assert SECRET not in text


def test_a_file_that_is_no_text_or_a_folder_is_refused_in_words(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_settings(Path("binary.toml"), {}, tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(tmp_path, {}, tmp_path)


def test_a_byte_order_mark_does_not_matter(tmp_path):
    assert load(tmp_path, '\ufeffowner = "ana"').settings.owner == "ana"


def test_the_data_folder_is_relative_to_the_file_in_force_else_to_the_working_folder(tmp_path):
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    work.mkdir()
    elsewhere.mkdir()
    assert load(work).settings.data_dir == work / "data"
    (elsewhere / "c.toml").write_text('data_dir = "memories"')
    assert load_settings(elsewhere / "c.toml", {}, work).settings.data_dir == elsewhere / "memories"
    assert load(work, OLVIDO_DATA_DIR="/var/olvido").settings.data_dir == Path("/var/olvido")
    assert load(work, OLVIDO_DATA_DIR="~/olvido", HOME="/home/ana").settings.data_dir == Path("/home/ana/olvido")
    assert "HOME" in refusal(work, OLVIDO_DATA_DIR="~/olvido")
    assert "data_dir" in refusal(work, 'data_dir = ""')


# What is refused


def test_all_problems_are_listed_at_once_each_with_its_key_and_origin(tmp_path):
    toml = """
        owner = "a/b"
        timezone = "Mars/Olympus"
        colour = "red"
        [model]
        provider = "openai"
        nam = "x"
        [limits]
        facts_tokens = -1
        same_similarity = 1.5
        [logs]
        retention_hours = "24"
    """
    text = refusal(tmp_path, toml, OLVIDO_LIMITS__FACT_TOKENS="many", OLVIDO_LOGS__LEVL="info")
    file = tmp_path / "olvido.toml"
    keys = ("owner", "timezone", "colour", "model.nam", "limits.facts_tokens", "limits.same_similarity")
    for key in (*keys, "logs.retention_hours"):
        assert f"- {key} ({file}): " in text
    assert "- model.api_key (not set): " in text
    assert "- limits.fact_tokens (environment OLVIDO_LIMITS__FACT_TOKENS): " in text
    assert "- logs.levl (environment OLVIDO_LOGS__LEVL): " in text
    assert text.count("\n- ") == 10


@pytest.mark.parametrize(
    ("toml", "environ", "meant"),
    [
        ("[model]\nprovder = 1", {}, "model.provider"),
        ("[modle]\nname = 1", {}, "model"),
        ("[limits]\nfact_token = 1", {}, "limits.fact_tokens"),
        ("", {"OLVIDO_MODEL_API_KEY": "x"}, "OLVIDO_MODEL__API_KEY"),
        ("", {"OLVIDO_DATADIR": "x"}, "OLVIDO_DATA_DIR"),
    ],
)
def test_an_unknown_key_is_refused_with_what_was_probably_meant(tmp_path, toml, environ, meant):
    assert f"Did you mean {meant}?" in refusal(tmp_path, toml, **environ)


def test_a_quoted_dotted_key_is_not_the_path_it_looks_like(tmp_path):
    assert "no such setting" in refusal(tmp_path, '"logs.level" = "debug"')


@pytest.mark.parametrize("toml", ['model = "kimi"', "limits = 3", '[telegram]\npeople = "ana"'])
def test_a_table_given_as_a_value_is_refused(tmp_path, toml):
    assert "this is a table" in refusal(tmp_path, toml)


def test_a_table_cannot_be_set_by_one_variable(tmp_path):
    assert "OLVIDO_TELEGRAM__PEOPLE__KEY" in refusal(tmp_path, OLVIDO_TELEGRAM__PEOPLE='{"1": "ana"}')


@pytest.mark.parametrize("provider", ["kimi", "openai", "openrouter"])
@pytest.mark.parametrize("key", [None, "", "   "])
def test_a_provider_that_needs_a_key_is_refused_without_one(tmp_path, provider, key):
    line = "" if key is None else f'api_key = "{key}"'
    assert "model.api_key" in refusal(tmp_path, f'[model]\nprovider = "{provider}"\n{line}')


def test_a_custom_provider_needs_an_address(tmp_path):
    assert "model.base_url (not set)" in refusal(tmp_path, '[model]\nprovider = "custom"')


def test_embeddings_at_openai_need_a_key_and_those_of_another_server_do_not(tmp_path):
    openai = '[embeddings]\nprovider = "openai"\n'
    assert "embeddings.api_key (not set)" in refusal(tmp_path, openai)
    assert "embeddings.api_key" in refusal(tmp_path, openai + 'base_url = "https://api.openai.com/v1/"')
    assert load(tmp_path, openai + 'base_url = "http://localhost:9/v1"').settings.embeddings.api_key is None


def test_a_key_no_header_can_carry_is_refused(tmp_path):
    for key in ("two words", "ключ-ключ", "line\\nbreak"):
        assert "model.api_key" in refusal(tmp_path, f'[model]\napi_key = "{key}"')


@pytest.mark.parametrize(
    "url", ["localhost:8080", "ftp://h/v1", "http://", "http://h/v1?key=1", "http://h:x/", "http://a b/"]
)
def test_an_address_that_is_none_is_refused(tmp_path, url):
    assert "model.base_url" in refusal(tmp_path, f'[model]\nbase_url = "{url}"')


@pytest.mark.parametrize("name", ["Ana-María_2", "小明", "रवि", "Ωμέγα", "x" * 64, "明" * 64])
def test_owners_have_names_in_any_script(tmp_path, name):
    assert load(tmp_path, f'owner = "{name}"').settings.owner == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "a.b", "x" * 65, "𠀀" * 64, "a\\u0000", "²", "🙂"])
def test_a_name_that_is_no_safe_file_name_is_refused(tmp_path, name):
    assert "owner" in refusal(tmp_path, f'owner = "{name}"')
    assert "telegram.people.1" in refusal(tmp_path, f'[telegram.people]\n1 = "{name}"')


def test_one_name_typed_in_two_unicode_forms_is_one_owner(tmp_path):
    assert load(tmp_path, 'owner = "Jose\u0301"').settings.owner == "Jos\u00e9"


def test_owners_that_differ_only_in_capitals_are_refused(tmp_path):
    text = refusal(tmp_path, 'owner = "Ana"\n[telegram.people]\n1 = "ana"\n2 = "bo"')
    assert "telegram.people.1" in text
    assert "telegram.people.2" not in text


@pytest.mark.parametrize("number", ["ana", "0", "01", "1.5", '"1.5"', "٣"])
def test_people_are_numeric_telegram_ids(tmp_path, number):
    quoted = number if number.isascii() and not number.startswith("1.") else json.dumps(number.strip('"'))
    assert "telegram.people" in refusal(tmp_path, f'[telegram.people]\n{quoted} = "ana"')


@pytest.mark.parametrize("value", ["0", "-1", "true", "1.5", "nan", "inf"])
def test_a_count_is_a_positive_whole_number(tmp_path, value):
    for key in ("[limits]\nfacts_tokens", "[logs]\nretention_hours", "[embeddings]\nbatch_texts"):
        assert key.partition("]\n")[2] in refusal(tmp_path, f"{key} = {value}")


@pytest.mark.parametrize(
    ("value", "fine"), [("0", True), ("1", True), ("0.5", True), ("1.01", False), ("-0.1", False), ("nan", False)]
)
def test_similarities_lie_between_0_and_1(tmp_path, value, fine):
    toml = f"[limits]\nsame_similarity = {value}"
    if fine:
        assert load(tmp_path, toml).settings.limits.same_similarity == float(value)
    else:
        assert "limits.same_similarity" in refusal(tmp_path, toml)


def test_a_config_error_is_an_error_of_the_assistant():
    assert issubclass(ConfigError, AssistantError)


# Nothing leaks


DISTINCT = st.text("qxzQXZ789", min_size=8, max_size=20).map(lambda text: f"value{text}")
TEXT_KEYS = [key.name for key in setting_keys().values() if not key.table]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=DISTINCT,
    key=st.sampled_from(TEXT_KEYS),
    wrap=st.sampled_from(["{}", "{} {}", "/{}?", "http://u:{}@h:x", "{}\n"]),
)
def test_no_error_message_ever_contains_the_value(tmp_path, value, key, wrap):
    text = wrap.format(value, value)
    table, _, name = key.rpartition(".")
    toml = (f"[{table}]\n" if table else "") + f"{name} = {json.dumps(text)}\n"
    variable = setting_keys()[key].variable
    for environ, content in (
        ({}, toml),
        ({variable: text}, ""),
        ({f"{variable}X": text}, ""),
        ({}, toml.replace('"', "")),
    ):
        try:
            load(tmp_path, content, **environ)
        except ConfigError as exc:
            assert value not in str(exc)
            assert exc.__cause__ is None
            assert exc.__context__ is None or value not in str(exc.__context__)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(-(10**12), 10**25) | st.floats(allow_nan=False), key=st.sampled_from(sorted(setting_keys())))
def test_no_error_message_ever_contains_a_number_that_was_set(tmp_path, number, key):
    assume(len(str(number)) > 8)
    table, _, name = key.rpartition(".")
    try:
        load(tmp_path, (f"[{table}]\n" if table else "") + f"{name} = {number}\n")
    except ConfigError as exc:
        assert str(number) not in str(exc).replace(str(tmp_path), "")


def test_secrets_do_not_show_in_what_python_prints(tmp_path):
    environ = {
        "OLVIDO_MODEL__API_KEY": SECRET,
        "OLVIDO_EMBEDDINGS__API_KEY": SECRET,
        "OLVIDO_TELEGRAM__TOKEN": SECRET,
        "OLVIDO_MODEL__BASE_URL": f"https://user:{SECRET}@host/v1",
        "OLVIDO_EMBEDDINGS__BASE_URL": f"https://user:{SECRET}@host/v1",
    }
    loaded = load(tmp_path, **environ)
    assert SECRET not in f"{loaded!r} {loaded.settings} {loaded.settings.model!s}"
    assert set(loaded.settings.secrets()) == {SECRET}


# The commented file


def test_the_example_in_the_repository_is_what_the_settings_render():
    committed = (ROOT / "config.example.toml").read_text(encoding="utf-8")
    assert committed == render_example(), "renew it with: olvido config init --force config.example.toml"


def test_the_example_as_it_is_means_the_defaults(tmp_path):
    loaded = load(tmp_path, render_example())
    assert set(loaded.origins.values()) == {"default"}


def test_every_setting_is_in_the_example_with_its_default_and_explanation(tmp_path):
    text = render_example()
    lines = [line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in text.splitlines()]
    table = tomllib.loads("\n".join(lines))
    for key in setting_keys().values():
        value = table
        for part in key.name.split("."):
            value = value[part]
        default = str(key.default) if isinstance(key.default, Path) else key.default
        assert value == (key.example if key.table or key.default is None else default)
        assert key.description
        assert f"# {key.description}" in text
        assert key.rule is None or f"Rule {key.rule}." in text
    assert load(tmp_path, "\n".join(lines)).settings.limits == Limits()


@pytest.mark.parametrize(
    "text",
    [
        'sk-proj-Zebra99quartz = "x"',
        '[model]\n"sk-proj-Zebra99quartz" = "kimi"',
        '[telegram.people]\n"123456:AAZebra99quartz" = "me"',
        "Zebra99quartz = 1",
    ],
)
def test_a_secret_typed_where_a_key_belongs_is_not_repeated(tmp_path, text):
    said = refusal(tmp_path, text)
    assert "Zebra" not in said
    assert "…" in said


def test_a_language_without_a_pack_is_refused_and_the_packs_present_are_named(tmp_path):
    loaded = load_settings(None, {"OLVIDO_LANGUAGE": "fr"}, tmp_path)
    with pytest.raises(ConfigError, match=r"language \(environment OLVIDO_LANGUAGE\).*en, es, it, zh"):
        language_packs(loaded)


def test_a_fallback_of_another_provider_has_its_own_key(tmp_path):
    chosen = {
        "OLVIDO_MODEL__PROVIDER": "kimi",
        "MOONSHOT_API_KEY": "first",
        "OLVIDO_MODEL__FALLBACKS": "k2, openai:gpt-x",
    }
    assert "model.fallback_keys.openai (not set)" in refusal(tmp_path, **chosen)
    loaded = load(tmp_path, OPENAI_API_KEY="zebraquartz", **chosen)
    assert {name: key.get_secret_value() for name, key in loaded.settings.model.fallback_keys.items()} == {
        "openai": "zebraquartz"
    }
    assert loaded.settings.model.api_key.get_secret_value() == "first"
    assert "zebraquartz" in loaded.settings.secrets()
    assert "zebraquartz" not in repr(loaded)


def test_a_colon_in_the_name_of_a_model_is_no_provider(tmp_path):
    loaded = load(tmp_path, OLVIDO_MODEL__PROVIDER="ollama", OLVIDO_MODEL__FALLBACKS="llama3.2:3b,qwen3:8b")
    assert list(loaded.settings.model.fallbacks) == ["llama3.2:3b", "qwen3:8b"]
