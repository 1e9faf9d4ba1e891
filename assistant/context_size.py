"""How much a server reads at once, asked where it can be asked, and what to do when that is too little."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from assistant.providers import LARGER_CONTEXT, PRESETS

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai._types import RequestOptions

    from assistant.settings import ModelSettings


async def context_note(client: "AsyncOpenAI", settings: "ModelSettings", model: str, needed_tokens: int) -> str | None:
    """What to tell the user if requests of that size do not fit; None if they do, or nobody knows."""
    tokens = await context_tokens(client, settings, model)
    if tokens is None or tokens >= needed_tokens:
        return None
    size = -(-needed_tokens // 1024) * 1024
    advice = LARGER_CONTEXT.get(settings.provider, "name a model that reads more").format(size)
    return (
        f"{model} reads at most {tokens} tokens there, but a request and its reply may need {needed_tokens}: of a "
        f"longer one the beginning would be lost. Please {advice}; or lower limits.request_tokens. If it reads more, "
        "say so in model.context_tokens."
    )


async def context_tokens(client: "AsyncOpenAI", settings: "ModelSettings", model: str) -> int | None:
    """What the model reads: by the settings, by its server, or by what is known of the provider."""
    preset = PRESETS[settings.provider]
    if settings.context_tokens:
        return settings.context_tokens
    if preset.context_route is None:
        # another address than the provider's own may be anything
        return preset.context_tokens if settings.base_url is None else None
    told = _told(settings.provider, await _answer(client, settings, preset.context_route), model)
    return told or preset.context_tokens


async def counted_tokens(client: "AsyncOpenAI", messages: Sequence[Mapping[str, object]]) -> int | None:
    """What a llama.cpp server makes of a request by its own template and tokenizer; None where it does not say."""
    import openai

    try:
        base = f"{client.base_url}"
        body: dict[str, object] = {"messages": list(messages)}
        again: RequestOptions = {"max_retries": 2}  # a connection kept from the last reply may be closed by now
        template = await client.post(urljoin(base, "../apply-template"), body=body, cast_to=object, options=again)
        prompt = {"content": _field(template, "prompt"), "add_special": True, "parse_special": True}
        counted = await client.post(urljoin(base, "../tokenize"), body=prompt, cast_to=object, options=again)
        tokens = _field(counted, "tokens")
    except (openai.OpenAIError, ValueError, TypeError):
        return None
    return len(tokens) if isinstance(tokens, list) else None


async def _answer(client: "AsyncOpenAI", settings: "ModelSettings", route: str) -> Any:
    import openai

    try:
        patience = settings.connect_timeout_seconds
        return await client.get(urljoin(f"{settings.url}/", route), cast_to=object, options={"timeout": patience})
    except (openai.OpenAIError, ValueError, TypeError):
        return None  # a server that does not say it; if it cannot be reached, the first request will


def _told(provider: str, answer: Any, model: str) -> int | None:
    if provider == "llamacpp":
        return _number(_field(_field(answer, "default_generation_settings"), "n_ctx"))
    entries = _field(answer, "models" if provider == "ollama" else "data")
    for entry in entries if isinstance(entries, list) else []:
        names = (_field(entry, "id"), _field(entry, "name"), _field(entry, "model"))
        if model in names or f"{model}:latest" in names:
            return _number(_field(entry, "loaded_context_length")) or _number(_field(entry, "context_length"))
    return None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
