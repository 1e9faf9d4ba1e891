"""Embeddings from any server that speaks OpenAI's API; openai is imported when the first text is embedded."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memory.database import forbid_in_transaction
from memory.embeddings import unit_length
from memory.errors import EmbedderError
from memory.limits import Limits
from memory.tokens import cut_to_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from memory.ports import Vectors

NO_KEY = "none"  # servers at home want no key, but the library does


class OpenAICompatibleEmbedder:
    """Embeds over HTTP, in batches; close it with `aclose` where it was used."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        dimension: int | None = None,
        timeout_seconds: float = 30.0,
        batch_texts: int = 64,
        retries: int = 2,
        limits: Limits | None = None,
    ) -> None:
        self._base_url = base_url
        self._model = model
        self._api_key = api_key
        self._dimension = dimension
        self._timeout_seconds = timeout_seconds
        self._batch_texts = batch_texts
        self._retries = retries
        self._max_tokens = (limits or Limits()).embed_max_tokens
        self._client: AsyncOpenAI | None = None

    @property
    def model(self) -> str:
        """Where the vectors come from, for the person's file: host, model and dimension, no user and no key."""
        parts = [_host(self._base_url), self._model]
        return "/".join([*parts, str(self._dimension)] if self._dimension else parts)

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """One row of unit length per text."""
        import numpy as np

        forbid_in_transaction("embedding")
        if not texts:  # how long no vector is can only be asked
            return (await self.embed(["."]))[:0]
        inputs = [cut_to_tokens(text, self._max_tokens) or "." for text in texts]
        rows: list[list[float]] = []
        for start in range(0, len(inputs), self._batch_texts):
            rows += self._checked(await self._ask(inputs[start : start + self._batch_texts]), start, len(inputs))
        if len({len(row) for row in rows}) != 1:
            raise self._nonsense("vectors of different lengths")
        return unit_length(np.asarray(rows, dtype=np.float32))

    async def aclose(self) -> None:
        """Ends the connections to the server."""
        if self._client is not None:
            client, self._client = self._client, None
            with suppress(RuntimeError):  # opened under a loop that has ended since
                await client.close()

    async def _ask(self, inputs: list[str]) -> Any:
        import openai

        client = self._connected()
        extra: dict[str, Any] = {"dimensions": self._dimension} if self._dimension else {}
        try:
            # plain numbers: many servers do not know the packed format the library asks for by itself
            return await client.embeddings.create(model=self._model, input=inputs, encoding_format="float", **extra)
        except openai.OpenAIError as exc:
            raise EmbedderError(self._explained(exc)) from exc
        except (ValueError, TypeError, AttributeError) as exc:  # the library, on an answer that is not JSON
            raise self._nonsense("something that is not JSON") from exc

    def _connected(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI

        if self._client is None:
            self._client = AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._api_key or NO_KEY,
                timeout=self._timeout_seconds,
                max_retries=self._retries,
            )
        return self._client

    def _checked(self, answer: Any, start: int, total: int) -> list[list[float]]:
        data = getattr(answer, "data", None)
        wanted = min(self._batch_texts, total - start)
        if not isinstance(data, list) or len(data) != wanted:
            count = len(data) if isinstance(data, list) else "no"
            raise self._nonsense(f"{count} vectors for {wanted} texts")
        indexes = [getattr(item, "index", None) for item in data]
        if sorted(index for index in indexes if isinstance(index, int)) == list(range(wanted)):
            data = sorted(data, key=lambda item: int(item.index))
        rows = [getattr(item, "embedding", None) for item in data]
        for row in rows:
            if not isinstance(row, list) or not row or not all(isinstance(number, int | float) for number in row):
                raise self._nonsense("something that is no vector of numbers")
            if self._dimension and len(row) != self._dimension:
                raise self._nonsense(f"vectors of {len(row)} numbers where embeddings.dimension says {self._dimension}")
        return [row for row in rows if row is not None]

    def _nonsense(self, what: str) -> EmbedderError:
        return EmbedderError(
            f"{_shown(self._base_url)} answered with {what}. Make sure that embeddings.base_url and embeddings.model "
            "name an embeddings API."
        )

    def _explained(self, exc: Exception) -> str:
        """What to do about one of the library's errors; its own words may repeat the key."""
        import openai

        where = _shown(self._base_url)
        if isinstance(exc, openai.APITimeoutError):
            patience = f"{self._timeout_seconds:g} seconds"
            return f"{where} did not answer within {patience}. Try again, or raise embeddings.timeout_seconds."
        if isinstance(exc, openai.APIResponseValidationError):
            return str(self._nonsense("something that is not JSON"))
        if isinstance(exc, openai.APIConnectionError):
            return f"{where} cannot be reached. Start the server, or correct embeddings.base_url."
        status = exc.status_code if isinstance(exc, openai.APIStatusError) else 0
        sentences = {
            400: f"refused the request. Make sure that {self._model} embeds texts and embeddings.dimension fits it.",
            401: "refused the key. Correct embeddings.api_key.",
            403: f"does not let this key use {self._model}. Choose another embeddings.model or embeddings.api_key.",
            404: f"knows no {self._model}, or is no embeddings API. Correct embeddings.model or embeddings.base_url.",
            429: "wants fewer requests, or the account is used up. Wait, or check the account.",
        }
        return f"{where} " + sentences.get(status, f"failed (status {status or 'unknown'}). Try again later.")


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _shown(url: str) -> str:
    """An address without the user and password it may hold."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{_host(url)}{parts.path}"
