"""The embedded embedder: wordllama's static vectors, offline, loaded when first needed and off the event loop."""

import asyncio
import hashlib
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from memory.database import forbid_in_transaction
from memory.errors import EmbedderError
from memory.language import LanguagePack, content_words, load_packs, well_formed
from memory.limits import Limits
from memory.ports import Vectors
from memory.tokens import cut_to_tokens

DIMENSION = 256

_loading = threading.Lock()
_loaded: list[Any] = []


class EmbeddedEmbedder:
    """Embeds the words that carry the subject; function words only blur the vectors of a static model."""

    def __init__(self, packs: Mapping[str, LanguagePack] | None = None, limits: Limits | None = None) -> None:
        self._packs = packs or load_packs()
        self._max_tokens = (limits or Limits()).embed_max_tokens

    @cached_property
    def _function_words(self) -> frozenset[str]:
        kept = frozenset().union(*(pack.words["negations"] for pack in self._packs.values()))
        return frozenset().union(*(pack.words["function_words"] for pack in self._packs.values())) - kept

    @cached_property
    def model(self) -> str:
        """The name says which function words were left out: other ones make other vectors."""
        recipe = hashlib.sha256("\n".join(sorted(self._function_words)).encode()).hexdigest()[:8]
        return f"wordllama-l2-supercat-{DIMENSION}-content-{recipe}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text."""
        forbid_in_transaction("embedding")
        return await asyncio.to_thread(self.embed_now, texts)

    def embed_now(self, texts: Sequence[str]) -> Vectors:
        """The same on this thread."""
        import numpy as np

        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        vectors = _model().embed([self._content(text) for text in texts], norm=False)
        return unit_length(np.asarray(vectors, dtype=np.float32))

    def _content(self, text: str) -> str:
        text = well_formed(cut_to_tokens(text, self._max_tokens))
        return _join(content_words(text, self._function_words)) or text or "."


def _join(words: Sequence[str]) -> str:
    """Words with spaces between them; Han characters stay together, as the tokenizer knows them."""
    pieces: list[str] = []
    for word in words:
        han = "\u3400" <= word[0] <= "\ufaff"
        if pieces and not (han and "\u3400" <= pieces[-1][-1] <= "\ufaff"):
            pieces.append(" ")
        pieces.append(word)
    return "".join(pieces)


def unit_length(vectors: Vectors) -> Vectors:
    """Rows scaled to length one; a row of nothing becomes the last axis, so that it is far from everything."""
    import numpy as np

    vectors = np.nan_to_num(vectors, nan=0.0, posinf=0.0, neginf=0.0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    empty = lengths[:, 0] < 1e-9
    scaled = vectors / np.where(lengths < 1e-9, 1.0, lengths)
    scaled[empty] = 0.0
    scaled[empty, -1] = 1.0
    return np.asarray(scaled, dtype=np.float32)


def _model() -> Any:
    """wordllama, loaded once per process."""
    with _loading:
        if not _loaded:
            import wordllama

            # it looks for its tokenizer elsewhere, and would then download it: its own folder has both
            folder = Path(wordllama.__file__).parent
            try:
                _loaded.append(wordllama.WordLlama.load(cache_dir=folder, disable_download=True, dim=DIMENSION))
            except (OSError, ValueError) as exc:
                raise EmbedderError(
                    "The embedded embedder cannot be loaded: the package wordllama is incomplete. Reinstall it."
                ) from exc
            _keep_no_texts(_loaded[0])
        return _loaded[0]


def _keep_no_texts(model: Any) -> None:
    """Its tokenizer takes a whole text for one word, and would keep the last 10,000 of them, some 25 MB."""
    with suppress(AttributeError):  # a version without that door
        model.tokenizer.model._resize_cache(0)
