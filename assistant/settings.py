"""Settings: everything that can be set, its default and unit, and how it is loaded.

Highest first: command line options, OLVIDO_ variables, customary variables such as OPENAI_API_KEY, the TOML file,
defaults. The figures of the engine are those of ``memory.limits.Limits``, embedded as they are.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SecretStr,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from assistant.checks import (
    chosen,
    fallback_providers,
    groups_apart,
    invalid,
    limits_out_of_range,
    missing,
    names_alike,
    problem,
    report,
)
from assistant.errors import ConfigError
from assistant.providers import KEY_VARIABLES, OPENAI_URL, PROVIDER_URLS
from assistant.sources import (
    Given,
    Key,
    customary,
    expand_home,
    find_file,
    from_environment,
    from_file,
    nested,
    read_file,
)
from memory.limits import Limits


def _refuse(sentence: str) -> PydanticCustomError:
    """A problem in our own words; pydantic's name the value, these must not."""
    return PydanticCustomError("setting", cast(Any, sentence))


def _owner(name: str) -> str:
    name = unicodedata.normalize("NFC", name)  # one name, one file, however it was typed
    letters = all(char in "-_" or unicodedata.category(char)[0] in "LM" or char.isdecimal() for char in name)
    if not name or not letters or len(name) > 64 or len(name.encode()) > 200:
        raise _refuse("use letters, digits, - and _ only, at most 64 of them (200 bytes)")
    return name


def _timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _refuse("use the name of a time zone such as Europe/Rome or UTC") from None
    return name


def _language(code: str) -> str:
    if not re.fullmatch(r"auto|[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", code):
        raise _refuse("use auto, or the code of a language such as en or es")
    return code


def _url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise _refuse("use an address that starts with http:// or https://, without ? and #")
    return url.rstrip("/")


def _secret(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value().strip()
    # anything else cannot travel in a header, and the libraries quote it when they say so
    if not text or not all("!" <= char <= "~" for char in text):
        raise _refuse("use the key alone: no spaces, only plain letters, digits and signs, not empty")
    return SecretStr(text)


def _telegram_id(number: object) -> int:
    if not re.fullmatch(r"-?[1-9][0-9]{0,18}", str(number)):  # the keys of a table are always text
        raise _refuse("the key is a Telegram id, a whole number such as 123456789")
    return int(str(number))


def _names(given: object) -> object:
    """Names in a list, or in a text separated by commas as a variable holds them."""
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise _refuse("use a list of names, or names separated by commas")
    return tuple(part.strip() for part in parts if part.strip())


def _model_file(path: object) -> object:
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise _refuse("use the path of a GGUF file, in quotes")
    return Path(path)


class _FromTable:
    """Lets a table build the strict dataclass; its fields stay strict."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        cast(dict[str, Any], handler.resolve_ref_schema(schema))["strict"] = False
        return schema


Owner = Annotated[str, AfterValidator(_owner)]
Url = Annotated[str, AfterValidator(_url)]
Secret = Annotated[SecretStr, AfterValidator(_secret)]
_TELEGRAM_TOKEN = re.compile(r"\d{5,}:[\w-]{30,}", re.ASCII)
TelegramId = Annotated[int, BeforeValidator(_telegram_id)]
Text = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
ModelFile = Annotated[Path, BeforeValidator(_model_file)]
Seconds = Annotated[float, Field(le=86_400, allow_inf_nan=False)]
Provider = Literal["embedded", "kimi", "openai", "openrouter", "ollama", "llamacpp", "lmstudio", "custom"]


class Section(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class ModelSettings(Section):
    """The model that answers."""

    provider: Provider = Field(default="embedded", description="Who answers; embedded is a small demonstration model.")
    base_url: Url | None = Field(
        default=None, repr=False, description="Address of the API, a URL.", examples=["http://localhost:8080/v1"]
    )
    name: Text | None = Field(
        default=None, description="Name of the model as its provider spells it.", examples=["gpt-5-mini"]
    )
    api_key: Secret | None = Field(default=None, description="Key of the provider, a secret.", examples=["..."])
    path: ModelFile | None = Field(
        default=None,
        description="Another GGUF file for the embedded provider; relative to this file's folder, a path.",
        examples=["models/qwen.gguf"],
    )
    fallbacks: Names | None = Field(
        default=None,
        description="Models asked in turn when the first one fails, a list of names; provider:name is another "
        "provider's.",
        examples=[["moonshot-v1-auto", "openai:gpt-4.1-mini"]],
    )
    summaries: Literal["model", "extracted"] = Field(
        default="model", description="Who writes summaries; the embedded model never does, it invents."
    )
    thinking: Literal["off", "default"] = Field(
        default="off", description="Whether models that think first are told not to, where that can be told."
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="How free the choice of words is, 0 to 2.", examples=[0.7]
    )
    max_reply_tokens: int = Field(default=1024, gt=0, le=1_000_000, description="The longest reply, in tokens.")
    context_tokens: int | None = Field(
        default=None, gt=0, description="What the model can read, where it cannot be asked, in tokens.", examples=[8192]
    )
    connect_timeout_seconds: Seconds = Field(default=10.0, gt=0, description="Patience until connected, in seconds.")
    first_token_timeout_seconds: Seconds = Field(
        default=120.0, gt=0, description="Patience until a reply begins, in seconds."
    )
    token_timeout_seconds: Seconds = Field(
        default=45.0, gt=0, description="Patience between two pieces of a reply, in seconds."
    )
    load_timeout_seconds: Seconds = Field(
        default=180.0, gt=0, description="Patience while the embedded model loads, in seconds."
    )
    retries: int = Field(default=3, ge=0, le=20, description="Times a request is repeated when that may help, a count.")
    backoff_seconds: Seconds = Field(
        default=0.5, gt=0, description="Pause before the first repetition, doubled each time, in seconds."
    )
    backoff_max_seconds: Seconds = Field(default=8.0, gt=0, description="The longest such pause, in seconds.")
    retry_after_max_seconds: Seconds = Field(
        default=30.0, gt=0, description="The longest pause a server may ask for, in seconds."
    )
    price_sent: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Price of a million tokens sent, in your currency.",
        examples=[0.6],
    )
    price_cached: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="The same for tokens the provider has in its cache; price_sent where it is not set.",
        examples=[0.15],
    )
    price_written: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Price of a million tokens written, in your currency.",
        examples=[2.5],
    )
    daily_ceiling: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="What may be spent in a day for each person; then no model is asked, in your currency.",
        examples=[1.0],
    )
    fallback_keys: dict[Provider, Secret] = Field(
        default={},
        description="Keys of the other providers in fallbacks: provider = key; a secret each.",
        examples=[{"openai": "..."}],
    )

    @property
    def url(self) -> str | None:
        """The address in force; None for the embedded model."""
        return self.base_url or PROVIDER_URLS.get(self.provider)


class EmbeddingsSettings(Section):
    """What turns texts into vectors."""

    provider: Literal["embedded", "openai"] = Field(
        default="embedded", description="Who embeds; openai is any server that speaks its API."
    )
    base_url: Url = Field(default=OPENAI_URL, repr=False, description="Address of the embeddings API, a URL.")
    model: Text = Field(
        default="text-embedding-3-small", description="Name of the embedding model, embedded ignores it."
    )
    api_key: Secret | None = Field(default=None, description="Key of the embeddings API, a secret.", examples=["..."])
    dimension: int | None = Field(
        default=None, gt=0, description="Length of a vector where the model lets you choose, a count.", examples=[512]
    )
    timeout_seconds: float = Field(
        default=30.0, gt=0, allow_inf_nan=False, description="Patience with one request, in seconds."
    )
    batch_texts: int = Field(default=64, gt=0, description="Texts embedded in one request, a count.")


class TelegramSettings(Section):
    """The Telegram bot and who may talk to it."""

    token: Secret | None = Field(default=None, description="Token from @BotFather, a secret.", examples=["..."])
    base_url: Url = Field(
        default="https://api.telegram.org", repr=False, description="Address of the Bot API server, a URL."
    )
    proxy: Url | None = Field(
        default=None, repr=False, description="Proxy on the way there, a URL.", examples=["http://localhost:3128"]
    )
    streaming: Literal["drafts", "edits", "off"] = Field(
        default="drafts", description="How a reply is shown while it is made; drafts become edits where there are none."
    )
    poll_seconds: int = Field(
        default=30, ge=0, le=600, description="How long the server may hold a request for news, in seconds."
    )
    timeout_seconds: Seconds = Field(default=15.0, gt=0, description="Patience with any other request, in seconds.")
    draft_seconds: Seconds = Field(
        default=0.7, ge=0, description="Pause between two states of a reply shown as a draft, in seconds."
    )
    edit_seconds: Seconds = Field(
        default=1.5, ge=0, description="Pause between two edits of a reply in a private chat, in seconds."
    )
    group_edit_seconds: Seconds = Field(
        default=4.0, ge=0, description="The same in a group, where Telegram allows fewer, in seconds."
    )
    typing_seconds: Seconds = Field(default=4.5, gt=0, description="How often “typing” is shown again, in seconds.")
    flood_wait_seconds: Seconds = Field(
        default=30.0,
        ge=0,
        description="The longest wait the server may ask for before a reply is put off, in seconds.",
    )
    retry_seconds: Seconds = Field(
        default=2.0, gt=0, description="Pause after a failed request, doubled each time, in seconds."
    )
    retry_max_seconds: Seconds = Field(default=60.0, gt=0, description="The longest such pause, in seconds.")
    conflict_seconds: Seconds = Field(
        default=60.0, ge=0, description="How long another program with the same token is put up with, in seconds."
    )
    document_bytes: int = Field(
        default=200_000, gt=0, le=20_000_000, description="The largest text document that is read, in bytes."
    )
    document_seconds: Seconds = Field(
        default=30.0, gt=0, description="How long the download of a document may take in all, in seconds."
    )
    facts_a_page: int = Field(default=5, gt=0, le=40, description="Facts on one page of /facts, a count.")
    people: dict[TelegramId, Owner] = Field(
        default={},
        description="Who may write: numeric Telegram id = owner, groups are below 0; empty means nobody.",
        examples=[{"123456789": "me"}],
    )

    @property
    def token_problem(self) -> str:
        """Why the token can be none of Telegram's; empty when it looks like one, or there is none."""
        if self.token is None or _TELEGRAM_TOKEN.fullmatch(self.token.get_secret_value()):
            return ""
        return (
            "What is set as telegram.token is no bot's token: digits, a colon and 35 letters and digits, such as "
            "123456789:AAbb... Copy the whole of it from @BotFather."
        )


class LogsSettings(Section):
    """The disposable logs."""

    retention_hours: int = Field(
        default=24, gt=0, le=87_600, description="Log files older than this are deleted, in hours."
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least important events logged; only debug holds the words of messages."
    )


class ServeSettings(Section):
    """The daemon."""

    turns_at_once: int = Field(default=8, gt=0, le=1_000, description="Messages answered at the same time, a count.")
    open_people: int = Field(
        default=16, gt=1, le=10_000, description="Memories of people held open at the same time, a count."
    )
    open_chats: int = Field(default=64, gt=0, le=10_000, description="Chats held ready for each of them, a count.")
    messages_per_minute: int = Field(
        default=30, gt=0, le=1_000_000, description="Messages one chat may send in a minute, a count."
    )
    waiting_messages: int = Field(
        default=50, gt=0, le=1_000_000, description="Messages of one chat that may wait for their answer, a count."
    )
    message_characters: int = Field(
        default=50_000, gt=0, le=10_000_000, description="The longest message that is read, in characters."
    )
    session_idle_hours: float = Field(
        default=8.0, gt=0, le=8_760, description="A chat silent for longer begins a new session, in hours."
    )
    grace_seconds: Seconds = Field(
        default=20.0,
        ge=0,
        description="What a stop leaves to replies under way; others wait for the next start, in seconds.",
    )
    delivery_seconds: Seconds = Field(
        default=20.0, gt=0, description="Patience until a channel has delivered a reply, in seconds."
    )
    retry_seconds: Seconds = Field(
        default=30.0, gt=0, description="Pause before a message is tried again that could not be stored, in seconds."
    )
    quiet_seconds: Seconds = Field(
        default=30.0, ge=0, description="The longest time background work waits for a quiet moment, in seconds."
    )
    upkeep_seconds: Seconds = Field(
        default=3600.0, gt=0, description="How often logs are expired and backups are looked after, in seconds."
    )
    folder_check_seconds: Seconds = Field(
        default=10.0, gt=0, description="How often the daemon looks whether its data folder is still there, in seconds."
    )
    known_message_days: int = Field(
        default=30, gt=0, le=3_650, description="How long a message that is delivered again is recognised, in days."
    )
    low_disk_bytes: int = Field(
        default=200_000_000, ge=0, description="Less free space than this is reported as a problem, in bytes."
    )


class BackupsSettings(Section):
    """Copies of each memory, made by the daemon."""

    every_hours: int = Field(
        default=24,
        ge=0,
        le=8_760,
        description="How old the newest copy may get while something changes; 0: none, in hours.",
    )
    keep: int = Field(default=7, gt=0, le=1_000, description="Copies of each memory that are kept, a count.")


class ToolsSettings(Section):
    """What the model may call."""

    offer: Literal["auto", "never"] = Field(
        default="auto", description="Whether tools are offered; auto: to every model but the embedded one."
    )
    fetch_hosts: Names | None = Field(
        default=None,
        description="Hosts fetch_url may read, a list of names; * means every public one, none turns it off.",
        examples=[["en.wikipedia.org"]],
    )
    rounds: int = Field(
        default=3, gt=0, le=20, description="Times a model may call tools before it has to answer, a count."
    )
    calls: int = Field(default=8, gt=0, le=64, description="Calls of one reply that are made, a count.")
    result_tokens: int = Field(
        default=300, ge=60, le=1_000, description="All results in a request together; longer ones are cut, in tokens."
    )
    timeout_seconds: Seconds = Field(default=15.0, gt=0, description="The longest a tool may take, in seconds.")
    cache_seconds: int = Field(
        default=3600, ge=0, le=86_400, description="How long the result of a call without effects holds, in seconds."
    )


class Settings(BaseSettings):
    """Everything that can be set; made by load_settings, which hands in what the sources say."""

    model_config = SettingsConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    data_dir: Path = Field(
        default=Path("data"),
        strict=False,
        description="Folder of everything stored; relative to this file's folder, a path.",
    )
    owner: Owner = Field(
        default="me", description="The person the command line speaks for, a name of letters, digits, - and _."
    )
    timezone: Annotated[str, AfterValidator(_timezone)] = Field(
        default="UTC", description='What "yesterday" refers to, an IANA time zone such as Europe/Rome.'
    )
    language: Annotated[str, AfterValidator(_language)] = Field(
        default="auto", description="Code of the language of notices such as es; auto detects it."
    )
    model: ModelSettings = ModelSettings()
    tools: ToolsSettings = ToolsSettings()
    embeddings: EmbeddingsSettings = EmbeddingsSettings()
    telegram: TelegramSettings = TelegramSettings()
    serve: ServeSettings = ServeSettings()
    backups: BackupsSettings = BackupsSettings()
    logs: LogsSettings = LogsSettings()
    limits: Annotated[Limits, _FromTable()] = Limits()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 (pydantic-settings' signature)
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what it is handed: the process's own environment is no hidden argument."""
        return (init_settings,)

    def secrets(self) -> tuple[str, ...]:
        """Every secret set, in the clear, for the one who has to keep them out of the logs."""
        keys = (self.model.api_key, self.embeddings.api_key, self.telegram.token, *self.model.fallback_keys.values())
        given = (self.model.base_url, self.embeddings.base_url, self.telegram.base_url, self.telegram.proxy)
        urls = (urlsplit(url) for url in given if url)
        users = (part for url in urls for part in (url.password, url.password and unquote(url.password)) if part)
        return (*(key.get_secret_value() for key in keys if key), *users)


def usable_owner(name: str) -> bool:
    """Whether a name can be that of a person: it becomes the name of a file."""
    try:
        return _owner(name) == name
    except PydanticCustomError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The settings in force, the file they were read from, and where each one was set."""

    settings: Settings
    file: Path | None
    origins: dict[str, str]


def setting_keys() -> dict[str, Key]:
    """Every key in the order of the file."""
    keys: list[Key] = []
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, Section):
            section = type(field.default)
            keys += [_key(f"{name}.{inner}", info) for inner, info in section.model_fields.items()]
        elif isinstance(field.default, Limits):
            keys += [_limit_key(limit) for limit in dataclasses.fields(Limits)]
        else:
            keys.append(_key(name, field))
    return {key.name: key for key in keys}


def _key(name: str, field: FieldInfo) -> Key:
    origin, arguments = get_origin(field.annotation), get_args(field.annotation)
    kinds = () if origin is dict else (field.annotation, *arguments)
    return Key(
        name=name,
        default=field.default,
        description=field.description or "",
        example=(field.examples or [None])[0],
        choices=arguments if origin is Literal else (),
        number=int if int in kinds else float if float in kinds else None,
        table=origin is dict,
    )


def _limit_key(limit: "dataclasses.Field[Any]") -> Key:
    return Key(
        name=f"limits.{limit.name}",
        default=limit.default,
        description=limit.metadata["explanation"],
        rule=limit.metadata["rule"],
        number=cast(type[int] | type[float], limit.type),
    )


def load_settings(
    config: Path | None, environ: Mapping[str, str], cwd: Path, *, options: Mapping[str, Given] | None = None
) -> LoadedSettings:
    """The settings by these arguments alone; ConfigError lists every problem at once."""
    keys = setting_keys()
    problems: list[str] = []
    file = find_file(config, environ, cwd)
    given = from_file(read_file(file), file, keys, problems) if file else {}
    variables = from_environment(environ, keys, problems)
    given |= customary(environ, _customary_names({**given, **variables}))
    given |= {**variables, **(options or {})}
    problems += limits_out_of_range(given, keys) + names_alike(given, str(keys["owner"].default))
    problems += groups_apart(given, str(keys["owner"].default))
    problems += missing(given, chosen(given, "embeddings.base_url") or OPENAI_URL)
    base = file.parent if file else cwd
    given["data_dir"] = _placed(given, base, environ, problems)
    if "model.path" in given and (path := chosen(given, "model.path").strip()):
        given["model.path"] = Given(str(base / expand_home(Path(path), environ)), given["model.path"].origin)
    settings: Settings | None = None
    try:
        settings = Settings(**cast(dict[str, Any], nested(given)))
    except ValidationError as exc:
        problems += [invalid(error, given) for error in exc.errors(include_url=False, include_input=False)]
    if settings is None or problems:  # raised out here so that no traceback chains to pydantic's message
        raise ConfigError(report(problems))
    origins = dict.fromkeys(keys, "default") | {name: entry.origin for name, entry in given.items()}
    return LoadedSettings(settings=settings, file=file, origins=origins)


def _customary_names(given: Mapping[str, Given]) -> dict[str, tuple[str, ...]]:
    """Which keys the customary variables set with the providers chosen."""
    provider = chosen(given, "model.provider")
    openai = [
        name
        for name, yes in (
            ("model", provider in ("openai", "custom")),
            ("embeddings", chosen(given, "embeddings.provider") == "openai"),
        )
        if yes
    ]
    names = {
        "OPENAI_API_KEY": tuple(f"{section}.api_key" for section in openai),
        "OPENAI_BASE_URL": tuple(f"{section}.base_url" for section in openai),
        "TELEGRAM_BOT_TOKEN": ("telegram.token",),
    }
    if provider in KEY_VARIABLES:
        variable = KEY_VARIABLES[provider]
        names[variable] = tuple({*names.get(variable, ()), "model.api_key"})
    for other in fallback_providers(given):
        if other in KEY_VARIABLES:
            names[KEY_VARIABLES[other]] = (*names.get(KEY_VARIABLES[other], ()), f"model.fallback_keys.{other}")
    return names


def _placed(given: Mapping[str, Given], base: Path, environ: Mapping[str, str], problems: list[str]) -> Given:
    """The data folder as an absolute path; what is no text is left for the validation to refuse."""
    entry = given.get("data_dir", Given(str(Settings.model_fields["data_dir"].default), "default"))
    if not isinstance(entry.value, str):
        return entry
    path = expand_home(Path(entry.value), environ)
    if not entry.value.strip() or path.parts[:1] == ("~",) or "\0" in entry.value:
        problems.append(problem("data_dir", given, "use the path of a folder; ~ needs the variable HOME"))
    return Given(base / path, entry.origin)
