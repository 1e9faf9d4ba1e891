"""The embedded embedder: wordllama's static vectors, offline, loaded when first needed and off the event loop."""

import asyncio
import hashlib
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from memory.database import forbid_in_transaction
from memory.errors import EmbedderError
from memory.language import LanguagePack, content_words, load_packs, well_formed
from memory.limits import Limits
from memory.ports import Vectors
from memory.tokens import cut_to_tokens

DIMENSION = 256
_BATCH = 64  # texts

_loading = threading.Lock()
_loaded: "list[_WordVectors]" = []


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
        return unit_length(_model().embed([self._content(text) for text in texts]))

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


class _WordVectors:
    """wordllama's files, read as it reads them. Itself it would load a web client and more before the first word."""

    def __init__(self, folder: Path) -> None:
        from safetensors import safe_open
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self._tokenizer.enable_padding()
        self._tokenizer.no_truncation()
        with suppress(AttributeError):  # it takes a whole text for one word, and would keep the last 10,000, some 25 MB
            self._tokenizer.model._resize_cache(0)
        with safe_open(folder / "weights" / f"l2_supercat_{DIMENSION}.safetensors", framework="np") as file:
            self._vectors = file.get_tensor("embedding.weight")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The mean of the vectors of a text's tokens, for each text."""
        import numpy as np

        found = np.empty((len(texts), DIMENSION), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            encoded = self._tokenizer.encode_batch(list(texts[start : start + _BATCH]), add_special_tokens=False)
            words = self._vectors[np.array([text.ids for text in encoded], dtype=np.int32)].astype(np.float32)
            mask = np.array([text.attention_mask for text in encoded], dtype=np.float32)
            counts = np.maximum(mask.sum(axis=1, keepdims=True), 1.0)
            found[start : start + _BATCH] = (words * mask[..., np.newaxis]).sum(axis=1) / counts
        return found


def _model() -> _WordVectors:
    """The word vectors, loaded once per process."""
    with _loading:
        if not _loaded:
            spec = find_spec("wordllama")
            try:
                if spec is None or spec.origin is None:
                    raise FileNotFoundError("wordllama")
                _loaded.append(_WordVectors(Path(spec.origin).parent))
            except Exception as exc:  # the tokenizer raises nothing more special
                raise EmbedderError(
                    "The embedded embedder cannot be loaded: the package wordllama is incomplete. Reinstall it."
                ) from exc
        return _loaded[0]
