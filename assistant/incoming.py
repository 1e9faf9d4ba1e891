"""One reply as it comes in: the patience with it, and what is kept of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

from assistant import explain
from assistant.errors import ModelError
from assistant.explain import Place
from assistant.reply import Finish, Reply, ToolCall
from assistant.thinking import WithoutThinking, settled

_FINISHES: dict[str, Finish] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


class Incoming:
    """A reply in the making. `begin` may be tried again with another one; after that its words are the user's."""

    def __init__(self, place: Place, ask: Callable[[], Awaitable[Any]]) -> None:
        self._place = place
        self._ask = ask
        self._stream: Any = None
        self._deadline = 0.0
        self._without_thinking = WithoutThinking()
        self._waiting = ""  # words that came before anybody asked for them
        self._text = ""
        self._finish: str | None = None
        self._over = False
        self._usage: Any = None
        self._tools: dict[int, dict[str, str]] = {}
        self.failure: ModelError | None = None

    async def begin(self) -> None:
        """Until there is something to show, or the reply is over; every failure is raised."""
        self._deadline = asyncio.get_running_loop().time() + self._place.settings.first_token_timeout_seconds
        try:
            self._stream = await self._patiently(self._ask(), began=False)
            while not self._waiting.strip() and not self._over:
                self._waiting += await self._next_piece(began=False)
        except BaseException:
            await self.aclose()
            raise
        if not self._waiting.strip() and not self._tools:
            await self.aclose()
            raise explain.empty(
                self._place, reached_limit=self._finish == "length", withheld=self._finish == "content_filter"
            )

    async def pieces(self) -> AsyncIterator[str]:
        """The words as they come. A failure ends them and is kept in `failure`: what came stays said."""
        piece, self._waiting = self._waiting, ""
        while True:
            if piece:
                self._text += piece
                yield piece
            if self._over:
                return
            try:
                piece = await self._next_piece(began=True)
            except ModelError as exc:
                self.failure = exc
                return

    def reply(self, notes: tuple[str, ...] = ()) -> Reply:
        """All of it, when it is over."""
        finish = "cut" if self.failure else _FINISHES.get(self._finish or "", "stop")
        prompt, cached, written = _counts(self._usage)
        return Reply(
            text=settled(self._text),
            finish_reason=finish,
            model=self._place.model,
            prompt_tokens=prompt,
            cached_tokens=cached,
            reply_tokens=written,
            tool_calls=tuple(
                ToolCall(id=call["id"] or f"call_{place}", name=call["name"], arguments=call["arguments"])
                for place, call in sorted(self._tools.items())
            ),
            notes=(*notes, *([str(self.failure)] if self.failure else [])),
        )

    async def aclose(self) -> None:
        """Ends the request; a server that is still writing stops."""
        self._over = True
        if self._stream is not None:
            stream, self._stream = self._stream, None
            with suppress(Exception):  # a connection that is broken anyway
                # a reply that is not read to its end leaves generators behind, which nobody else closes
                if iterator := getattr(stream, "_iterator", None):
                    await iterator.aclose()
            with suppress(Exception):
                await stream.close()

    async def _next_piece(self, *, began: bool) -> str:
        """The next words to show, perhaps none; at the end what was held back."""
        chunk = await self._patiently(anext(self._stream, None), began=began)
        if chunk is None:
            if self._finish is None:
                raise explain.broken_off(self._place) if self._is_stream() else explain.nonsense(self._place)
            self._over = True
            return self._without_thinking.rest()
        self._usage = getattr(chunk, "usage", None) or self._usage
        for choice in getattr(chunk, "choices", None) or []:
            self._finish = getattr(choice, "finish_reason", None) or self._finish
            self._usage = getattr(choice, "usage", None) or self._usage  # Kimi's place for it
            delta = getattr(choice, "delta", None)
            self._take_tools(getattr(delta, "tool_calls", None) or [])
            content = getattr(delta, "content", None)
            if _thinks(delta):  # a model that thinks is alive: patience starts anew
                self._deadline = asyncio.get_running_loop().time() + self._place.settings.first_token_timeout_seconds
            if isinstance(content, str) and content:
                return self._without_thinking(content)
        return ""

    def _is_stream(self) -> bool:
        """Whether what came was meant as a stream; a web page is none."""
        kind: str = self._stream.response.headers.get("content-type", "")
        return kind.startswith("text/event-stream")

    def _take_tools(self, calls: list[Any]) -> None:
        for call in calls:
            kept = self._tools.setdefault(getattr(call, "index", 0) or 0, {"id": "", "name": "", "arguments": ""})
            function = getattr(call, "function", None)
            kept["id"] = getattr(call, "id", None) or kept["id"]
            kept["name"] += getattr(function, "name", None) or ""
            kept["arguments"] += getattr(function, "arguments", None) or ""

    async def _patiently(self, coming: Awaitable[Any], *, began: bool) -> Any:
        """What comes, in time, with the library's errors as ours."""
        import openai

        now = asyncio.get_running_loop().time()
        until = now + self._place.settings.token_timeout_seconds if began else self._deadline
        try:
            async with asyncio.timeout_at(until):
                return await coming
        except TimeoutError:
            raise explain.late(self._place, began=began) from None
        except openai.OpenAIError as exc:
            error = explain.broken_off(self._place) if began and _lost(exc) else explain.explained(exc, self._place)
            raise error from exc
        except (ValueError, TypeError, AttributeError, LookupError) as exc:  # the library, on what is no chat reply
            raise explain.nonsense(self._place) from exc


def _lost(exc: Exception) -> bool:
    import openai

    return isinstance(exc, openai.APIConnectionError)


def _thinks(delta: Any) -> bool:
    return bool(getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None))


def _counts(usage: Any) -> tuple[int, int, int]:
    """Tokens of the prompt, of these from the cache, and of the reply; 0 for what a server does not tell."""
    cached = _told(_told(usage, "prompt_tokens_details"), "cached_tokens") or _told(usage, "cached_tokens")
    counts = (_told(usage, "prompt_tokens"), cached, _told(usage, "completion_tokens"))
    prompt, from_cache, written = (count if isinstance(count, int) and count > 0 else 0 for count in counts)
    return prompt, from_cache, written


def _told(value: Any, name: str) -> Any:
    """A field of what the library knows, or of what it passes on as it came."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)
