"""What the openai package's errors mean, and what to do about each; mapped here once, without a key in any sentence."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from assistant.errors import (
    BadReply,
    ContextTooLong,
    EmbeddedUnavailable,
    KeyRefused,
    ModelBusy,
    ModelError,
    ModelFailed,
    ModelTimeout,
    ModelUnknown,
    ModelUnreachable,
    RequestRefused,
)
from assistant.redact import Redactor

if TYPE_CHECKING:
    from assistant.settings import ModelSettings

_TOO_LONG = re.compile(
    r"context.?(length|size|window|limit)|maximum context|(prompt|input|request|messages?) (is|are) too long|"
    r"too many tokens",
    re.IGNORECASE,
)
_USED_UP = re.compile(
    r"insufficient_quota|exceeded_current_quota|insufficient.{0,20}(balance|credit|fund)", re.IGNORECASE
)
_LONGEST_QUOTE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which model was asked, and where."""

    settings: "ModelSettings"
    model: str

    @property
    def where(self) -> str:
        """The address without the user and password it may hold."""
        if self.embedded or not self.settings.url:
            return "The embedded model"
        parts = urlsplit(self.settings.url)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"

    @property
    def embedded(self) -> bool:
        """Whether it runs on this machine, as a child of ours."""
        return self.settings.provider == "embedded"

    def redacted(self, text: str) -> str:
        """A server's own words, short and without the key."""
        key = self.settings.api_key
        words = Redactor([key.get_secret_value()] if key else [])(" ".join(text.split()))
        return words if len(words) <= _LONGEST_QUOTE else f"{words[:_LONGEST_QUOTE]}…"


def explained(exc: Exception, place: Place) -> ModelError:
    """The error to raise for one of the library's."""
    import openai

    if isinstance(exc, openai.APITimeoutError):
        return late(place, began=False)
    if isinstance(exc, openai.APIStatusError):
        return _by_status(exc.status_code, exc.body, exc.response.headers, place)
    if isinstance(exc, openai.APIConnectionError):
        return unreachable(place)
    if isinstance(exc, openai.APIResponseValidationError) or not isinstance(exc, openai.APIError):
        return nonsense(place)
    return _by_status(_status_in(exc.body), exc.body, {}, place)  # an error told inside a stream


def unreachable(place: Place) -> ModelError:
    """Nobody answers, or the connection broke."""
    if place.embedded:
        return EmbeddedUnavailable("The embedded model stopped. Try again: it will be started anew.", retryable=True)
    advice = {
        "ollama": "Start Ollama, or correct model.base_url.",
        "llamacpp": "Start llama-server, or correct model.base_url.",
        "lmstudio": "Start the server of LM Studio, or correct model.base_url.",
        "custom": "Start the server, or correct model.base_url.",
    }.get(place.settings.provider, "Check the connection to the Internet and model.base_url.")
    return ModelUnreachable(f"{place.where} cannot be reached. {advice}", retryable=True)


def late(place: Place, *, began: bool) -> ModelError:
    """Too long without a word, at the beginning or between two pieces."""
    given = place.settings
    seconds, key = (
        (given.token_timeout_seconds, "model.token_timeout_seconds")
        if began
        else (given.first_token_timeout_seconds, "model.first_token_timeout_seconds")
    )
    return ModelTimeout(
        f"{place.where} said nothing for {seconds:g} seconds. Try again, or raise {key}.", retryable=True
    )


def nonsense(place: Place) -> ModelError:
    """An answer that is none."""
    return BadReply(
        f"{place.where} answered with something that is no chat reply. Make sure that model.base_url is the address of "
        "an OpenAI-compatible API; most end in /v1."
    )


def broken_off(place: Place) -> ModelError:
    """A stream that ended without saying so."""
    return ModelUnreachable(f"{place.where} broke off in the middle of its reply. Try again.", retryable=True)


def empty(place: Place, *, reached_limit: bool, withheld: bool) -> ModelError:
    """A reply without a word in it."""
    if withheld:
        return BadReply(f"{place.where} withheld its reply by its content rules. Put it in other words.")
    if reached_limit:
        return BadReply(
            f"{place.model} used up its whole reply for thinking. Raise model.max_reply_tokens, or name a model that "
            "does not think first."
        )
    return BadReply(
        f"{place.model} answered with nothing, twice. Ask again in other words, or name another model in model.name.",
        retryable=True,
    )


def _by_status(status: int, body: object, headers: Mapping[str, str], place: Place) -> ModelError:
    said = _message(body)
    if status in (400, 413, 422):
        return _refused(status, said, _words(body), place)
    if status in (402, 429):
        return _busy(status, said, headers, place)
    if status in (401, 403, 404):
        return _wrong(status, place)
    waiting = _wait_seconds(headers)
    sentence = f"{place.where} failed (status {status}). Try again later."
    return ModelFailed(sentence, retryable=status in (408, 409) or status >= 500, wait_seconds=waiting)


def _refused(status: int, said: str, words: str, place: Place) -> ModelError:
    if status == 413 or _TOO_LONG.search(said):
        return ContextTooLong(
            f"The request is longer than {place.model} can read there. Give the server a larger context, or lower "
            "limits.request_tokens or model.max_reply_tokens."
        )
    quote = f" It says: “{place.redacted(words)}”." if words else ""
    return RequestRefused(f"{place.where} refused the request for {place.model}.{quote} Check the section [model].")


def _busy(status: int, said: str, headers: Mapping[str, str], place: Place) -> ModelError:
    if status == 402 or _USED_UP.search(said):
        return ModelBusy(f"The account at {place.where} is used up. Add credit, or choose another provider.")
    waiting = _wait_seconds(headers)
    longest = place.settings.retry_after_max_seconds
    if waiting is not None and waiting > longest:
        return ModelBusy(f"{place.where} wants fewer requests. Try again in {_in_words(waiting)}.")
    return ModelBusy(
        f"{place.where} has too many requests at the moment. Wait a little and try again.",
        retryable=True,
        wait_seconds=waiting,
    )


def _wrong(status: int, place: Place) -> ModelError:
    if status == 401:
        return KeyRefused(f"{place.where} refused the key. Correct model.api_key.")
    if status == 403:
        return KeyRefused(
            f"{place.where} does not let this key use {place.model}. Choose another model.name or model.api_key."
        )
    pull = f" With Ollama, get it first: ollama pull {place.model}." if place.settings.provider == "ollama" else ""
    return ModelUnknown(
        f"{place.where} knows no model {place.model}, or is no chat API. Correct model.name or model.base_url.{pull}"
    )


def _status_in(body: object) -> int:
    """The status in the body of an error told inside a stream; 500 where it names none."""
    code = _field(body, "code") or _field(body, "status")
    if isinstance(code, int) and 400 <= code < 600:
        return code
    words = f"{code} {_field(body, 'type')}"
    return 429 if "rate_limit" in words or "quota" in words or "overloaded" in words else 500


def _message(body: object) -> str:
    """All a server says of its refusal: code, type and message."""
    inner = _field(body, "error") or body
    parts = [_field(inner, "code"), _field(inner, "type"), _words(body)]
    return " ".join(part for part in parts if isinstance(part, str))


def _words(body: object) -> str:
    """The sentence in it."""
    inner = _field(body, "error") or body
    words = inner if isinstance(inner, str) else _field(inner, "message")
    return words.strip() if isinstance(words, str) else ""


def _field(body: object, name: str) -> Any:
    return body.get(name) if isinstance(body, Mapping) else None


def _wait_seconds(headers: Mapping[str, str]) -> float | None:
    """How long the server asks us to wait: seconds, milliseconds or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return seconds if 0 <= seconds < 1e9 else None
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def _in_words(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
