"""The model that answers: one adapter over the openai package for every provider, and for the embedded model."""

import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from assistant.context_size import context_note, counted_tokens
from assistant.errors import BadReply, ContextTooLong, KeyRefused, ModelError, ModelUnreachable, RequestRefused
from assistant.explain import Place
from assistant.incoming import Incoming
from assistant.logs import get_logger
from assistant.providers import EMBEDDED, PRESETS, provider_and_model
from assistant.reply import JsonReply, Reply, ToolCall

if TYPE_CHECKING:
    from ssl import SSLContext

    from openai import AsyncOpenAI

    from assistant.embedded import EmbeddedServer, Progress
    from assistant.settings import ModelSettings, Provider, Settings, ToolsSettings

__all__ = ["ChatModel", "JsonReply", "Reply", "ToolCall", "open_model"]

NO_KEY = "none"  # servers at home want no key, but the library does
Messages = Sequence[Mapping[str, object]]
Schema = TypeVar("Schema", bound=BaseModel)
R = TypeVar("R")


class ChatModel:
    """Answers requests; opened once, used by everybody."""

    def __init__(
        self,
        settings: "ModelSettings",
        *,
        server: "EmbeddedServer | None" = None,
        name: str,
        tools: "ToolsSettings",
    ) -> None:
        self.settings = settings
        self.tools = tools
        self.name = name
        self._server = server
        fallbacks = () if server else tuple(_fallback(settings, other) for other in settings.fallbacks or ())
        self._places = (Place(settings=settings, model=name), *fallbacks)
        self._clients: dict[str, tuple[str, AsyncOpenAI]] = {}  # by provider, with the address each is for
        self._first_words: Callable[[], str | None] | None = None
        self._note: str | None = None
        self._without_tools: set[str] = set()  # models that refuse requests with tools
        self._only_objects: set[str] = set()  # models that know JSON but no schemas
        self._log = get_logger(part="model")  # also keeps the retry library's events off stdout

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: "Settings", *, progress: "Progress | None" = None) -> AsyncIterator[Self]:
        """The model the settings name; the embedded one is started, and ends with this block."""
        given = settings.model
        if given.provider == EMBEDDED:
            from assistant.embedded import EmbeddedServer, demonstration_notice

            async with EmbeddedServer.start(settings, progress=progress) as server:
                model = cls(given, server=server, name=server.name, tools=settings.tools)
                model._first_words = partial(demonstration_notice, settings)
                try:
                    yield model
                finally:
                    await model._disconnect()
            return
        model = cls(given, name=given.name or PRESETS[given.provider].model or "", tools=settings.tools)
        try:
            await model._find_name()
            model._note = await model.context_note(settings.limits.request_tokens) or _ceiling_note(given)
            yield model
        finally:
            await model._disconnect()

    @property
    def embedded(self) -> bool:
        """Whether this is the demonstration model, or a file of the user's, run by ourselves."""
        return self._server is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know before the talk begins; that this is a demonstration is told once and for all."""
        if self._first_words is not None:
            first, self._first_words = self._first_words(), None
            self._note = first
        return (self._note,) if self._note else ()

    @property
    def writes_summaries(self) -> bool:
        """Whether it may write memory (S5); the embedded one never does."""
        return self._server is None and self.settings.summaries == "model"

    @property
    def calls_tools(self) -> bool:
        """Whether it is offered tools: not the embedded one, nor one that refused them."""
        return self._server is None and self.tools.offer == "auto" and self.name not in self._without_tools

    async def stream(
        self,
        messages: Messages,
        *,
        tools: Sequence[Mapping[str, object]] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[str | Reply]:
        """The words of the reply as they come, then the Reply itself.

        Repeats and other models are tried only until the first word is out. A failure after it raises nothing: the
        Reply holds what came, its finish_reason is "cut" and its last note says why.
        """

        async def begin(place: Place) -> Incoming:
            offered = () if place.model in self._without_tools else tools
            try:
                return await self._begin(place, _request(place, messages, offered, max_tokens))
            except ContextTooLong:
                raise
            except RequestRefused:  # perhaps it knows no tools
                if not offered:
                    raise
                reply = await self._begin(place, _request(place, messages, (), max_tokens))
                self._without_tools.add(place.model)
                return reply

        incoming, notes = await self._ask(begin)
        try:
            async for piece in incoming.pieces():
                yield piece
            reply = incoming.reply(notes)
            if incoming.failure:
                self._log.warning("reply_cut", model=reply.model, reason=str(incoming.failure))
            yield reply
        finally:
            await incoming.aclose()

    async def complete_json(
        self, messages: Messages, schema: type[Schema], *, max_tokens: int | None = None
    ) -> JsonReply[Schema]:
        """An answer of the form of `schema`; BadReply when it is something else."""

        async def whole(place: Place) -> Reply:
            return await self._whole_json(place, messages, schema, max_tokens)

        reply, _ = await self._ask(whole)
        return JsonReply(
            value=self._parsed(reply, schema),
            model=reply.model,
            prompt_tokens=reply.prompt_tokens,
            cached_tokens=reply.cached_tokens,
            reply_tokens=reply.reply_tokens,
        )

    async def context_note(self, request_tokens: int) -> str | None:
        """A sentence for the user if the server reads less than a request and its reply may need; also logged."""
        if self._server is not None:
            return None
        needed = request_tokens + self.settings.max_reply_tokens
        note = await context_note(await self._connected(), self.settings, self.name, needed)
        if note:
            self._log.warning("context_too_small", model=self.name, needed_tokens=needed)
        return note

    async def count_tokens(self, messages: Messages) -> int | None:
        """What the model really makes of a request, where that can be asked before sending it: llama.cpp's servers."""
        if self._server is None and self.settings.provider != "llamacpp":
            return None
        return await counted_tokens(await self._connected(), messages)

    # -- asking

    async def _ask(self, once: Callable[[Place], Awaitable[R]]) -> tuple[R, tuple[str, ...]]:
        """What the first model that answers gives, and a note if it is not the one configured."""
        first: ModelError | None = None
        hopeless: set[str] = set()  # providers none of whose models will answer
        for place in self._places:
            if place.settings.provider in hopeless:
                continue
            try:
                answer = await self._repeatedly(once, place)
            except ModelError as exc:
                self._log.warning("model_failed", model=place.model, error=type(exc).__name__, reason=str(exc))
                first = first or exc
                if not _another_may_help(exc):
                    hopeless.add(place.settings.provider)
            else:
                changed = place is not self._places[0]
                return answer, (f"{self.name} did not answer; {place.model} did.",) if changed else ()
        assert first is not None  # there is at least one name
        raise first

    async def _repeatedly(self, once: Callable[[Place], Awaitable[R]], place: Place) -> R:
        import stamina

        given = self.settings
        empty = 0

        def again(exc: Exception) -> bool | float:
            nonlocal empty
            if not isinstance(exc, ModelError) or not exc.retryable:
                return False
            if isinstance(exc, BadReply):
                empty += 1
                return empty == 1
            if exc.wait_seconds is None:
                return True
            return exc.wait_seconds if exc.wait_seconds <= given.retry_after_max_seconds else False

        async for attempt in stamina.retry_context(
            on=again,
            attempts=given.retries + 1,
            timeout=None,
            wait_initial=given.backoff_seconds,
            wait_max=given.backoff_max_seconds,
            wait_jitter=given.backoff_seconds,
        ):
            with attempt:
                return await once(place)
        raise AssertionError("unreachable: the last attempt raises or returns")

    async def _begin(self, place: Place, request: Mapping[str, Any]) -> Incoming:
        client = await self._connected(place.settings)
        incoming = Incoming(place, lambda: client.chat.completions.create(**request))
        await incoming.begin()
        return incoming

    async def _whole_json(
        self, place: Place, messages: Messages, schema: type[BaseModel], max_tokens: int | None
    ) -> Reply:
        if place.model not in self._only_objects:
            try:
                return await self._whole(place, messages, _as_schema(schema), max_tokens)
            except RequestRefused:  # perhaps it knows no schemas
                self._only_objects.add(place.model)
        told = [*messages, {"role": "system", "content": _in_words(schema)}]
        return await self._whole(place, told, {"type": "json_object"}, max_tokens)

    async def _whole(
        self, place: Place, messages: Messages, form: Mapping[str, object], max_tokens: int | None
    ) -> Reply:
        request = _request(place, messages, (), max_tokens)
        incoming = await self._begin(place, {**request, "response_format": form})
        try:
            async for _ in incoming.pieces():
                pass
            if incoming.failure:
                raise incoming.failure
            return incoming.reply()
        finally:
            await incoming.aclose()

    def _parsed(self, reply: Reply, schema: type[Schema]) -> Schema:
        text = reply.text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
        try:
            return schema.model_validate_json(text)
        except ValidationError:
            pass  # outside, so that no traceback holds what the model said
        raise BadReply(
            f"{reply.model} did not answer with the JSON it was asked for. Name another model in model.name."
        )

    # -- the connection

    async def _connected(self, settings: "ModelSettings | None" = None) -> "AsyncOpenAI":
        """The client for the address in force; a restarted embedded server has another one."""
        given = settings or self.settings
        key = given.api_key.get_secret_value() if given.api_key else NO_KEY
        url = given.url or ""
        if self._server is not None:
            url, key = await self._server.running()
        known = self._clients.get(given.provider)
        if known is not None and known[0] == url:
            return known[1]
        self._clients[given.provider] = (url, _client(given, url, key))
        if known is not None:
            await known[1].close()
        return self._clients[given.provider][1]

    async def _disconnect(self) -> None:
        clients, self._clients = self._clients, {}
        for _, client in clients.values():
            await client.close()

    async def _find_name(self) -> None:
        """Where neither the settings nor the preset name a model, the first one the server has."""
        if self.name:
            return
        import openai

        self.name = "default"
        try:
            listed = await (await self._connected()).models.list()
            names = [model.id for model in listed.data if "embed" not in model.id.lower()]
            self.name = names[0] if names else self.name
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            self._log.info("model_not_listed")
        self._places = (Place(settings=self.settings, model=self.name), *self._places[1:])


open_model = ChatModel.open


def _ceiling_note(settings: "ModelSettings") -> str | None:
    if settings.daily_ceiling is None or None not in (settings.price_sent, settings.price_written):
        return None
    return "model.daily_ceiling has no effect yet: set model.price_sent and model.price_written as well."


def _another_may_help(exc: ModelError) -> bool:
    """Whether another model of the same provider may answer where one did not."""
    return not isinstance(exc, ModelUnreachable | KeyRefused)


def _request(
    place: Place, messages: Messages, tools: Sequence[Mapping[str, object]], max_tokens: int | None
) -> dict[str, Any]:
    """What is sent to a model, as its provider wants it."""
    given, preset, name = place.settings, PRESETS[place.settings.provider], place.model
    temperature = preset.temperature if given.temperature is None else given.temperature
    request: dict[str, Any] = {
        "model": name,
        "messages": list(messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        preset.reply_limit: min(max_tokens or given.max_reply_tokens, preset.reply_tokens or sys.maxsize),
    }
    if temperature is not None:
        request["temperature"] = temperature
    if tools:
        request["tools"] = list(tools)
    if given.thinking == "off" and preset.without_thinking and name.startswith(preset.thinking_models):
        request["extra_body"] = dict(preset.without_thinking)
    if preset.body:
        request["extra_body"] = {**request.get("extra_body", {}), **preset.body}
    return request


def _fallback(settings: "ModelSettings", name: str) -> Place:
    """Where a model is asked that is named beside the first one."""
    provider, model = provider_and_model(name)
    if provider is None or provider == settings.provider:
        return Place(settings=settings, model=model)
    key = settings.fallback_keys.get(cast("Provider", provider))
    other = settings.model_copy(update={"provider": provider, "base_url": None, "name": model, "api_key": key})
    return Place(settings=other, model=model)


def _client(settings: "ModelSettings", url: str, key: str) -> "AsyncOpenAI":
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line a request, and another library shows it to the user
    longest = max(settings.first_token_timeout_seconds, settings.token_timeout_seconds) + 5  # ours comes first
    timeout = Timeout(longest, connect=settings.connect_timeout_seconds)
    at_home = urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
    client = AsyncOpenAI(
        base_url=url,
        api_key=key,
        max_retries=0,
        timeout=timeout,
        # what runs on this machine is not reached through a proxy, which would read the key
        http_client=DefaultAsyncHttpxClient(timeout=timeout, trust_env=not at_home, verify=_certificates()),
    )
    if settings.provider != "openai":  # taken from the environment, and nobody else's business
        client.organization = client.project = None
    return client


@cache
def _certificates() -> "SSLContext":
    """Slow to load, and the same for all connections."""
    import httpx2

    return httpx2.create_ssl_context()


def _as_schema(schema: type[BaseModel]) -> dict[str, object]:
    named = {"name": schema.__name__, "schema": schema.model_json_schema(), "strict": True}
    return {"type": "json_schema", "json_schema": named}


def _in_words(schema: type[BaseModel]) -> str:
    task = resources.files("prompts").joinpath("tasks", "json.md").read_text("utf-8").strip()
    return f"{task}\n{json.dumps(schema.model_json_schema(), ensure_ascii=False)}"
