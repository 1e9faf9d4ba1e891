"""What is known of each model provider: where it answers, what it must be sent, and where its key is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

OPENAI_URL = "https://api.openai.com/v1"
EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """How to talk to a provider. Addresses and model names are defaults: the settings go first."""

    url: str | None = None
    model: str | None = None  # None: the first one the server lists
    key_variable: str | None = None  # where other programs read the key from
    key_needed: bool = False  # answers nobody without a key
    context_tokens: int | None = None  # what its models can read at least, unless the server can be asked
    context_route: str | None = None  # where the server says how much a model reads; relative to the address
    temperature: float | None = None  # None: the provider's own, which some models insist on
    reply_limit: str = "max_tokens"  # the name of that parameter
    reply_tokens: int | None = None  # longer replies are not worth having
    body: Mapping[str, object] | None = None  # what else its requests hold
    without_thinking: Mapping[str, object] | None = None  # what spares the thinking of the models named below
    thinking_models: tuple[str, ...] = ()  # beginnings of names


_NO_THINKING: Mapping[str, object] = {"thinking": {"type": "disabled"}}

PRESETS: Mapping[str, Preset] = {
    # so small a model says the same for ever unless it is kept from it; with a repeat_penalty of 1.25 it raved instead,
    # probably because that falls on the sign that ends a reply too. Chosen by reading one short talk with each of seven
    # sets of figures, which is no measurement; long answers still run into the limit
    EMBEDDED: Preset(
        model=EMBEDDED,
        temperature=0.2,
        reply_tokens=160,
        body={
            "repeat_penalty": 1.08,
            "repeat_last_n": 64,
            "min_p": 0.1,
            "dry_multiplier": 0.5,
            "dry_allowed_length": 4,
        },
    ),
    "kimi": Preset(
        url="https://api.moonshot.ai/v1",
        model="kimi-k2.5",
        key_variable="MOONSHOT_API_KEY",
        key_needed=True,
        context_tokens=262_144,
        # these refuse every temperature but the one that goes with thinking or not: none is sent
        without_thinking=_NO_THINKING,
        thinking_models=("kimi-k2.5", "kimi-k2.6"),
    ),
    "openai": Preset(
        url=OPENAI_URL,
        model="gpt-4.1-mini",
        key_variable="OPENAI_API_KEY",
        key_needed=True,
        context_tokens=128_000,
        reply_limit="max_completion_tokens",
    ),
    "openrouter": Preset(
        url="https://openrouter.ai/api/v1",
        model="moonshotai/kimi-k2.5",
        key_variable="OPENROUTER_API_KEY",
        key_needed=True,
        context_tokens=32_000,  # its list of models is long, and nearly all of them read more
        without_thinking={"reasoning": {"enabled": False}},
        thinking_models=("moonshotai/kimi-k2.5", "moonshotai/kimi-k2.6"),
    ),
    # asked only while the model is loaded; before that its default holds
    "ollama": Preset(url="http://localhost:11434/v1", model="llama3.2", context_tokens=4096, context_route="../api/ps"),
    "llamacpp": Preset(url="http://localhost:8080/v1", model="default", context_route="../props"),
    "lmstudio": Preset(url="http://localhost:1234/v1", context_tokens=4096, context_route="../api/v0/models"),
    "custom": Preset(key_variable="OPENAI_API_KEY"),
}

# what to do about a context that is too small, where the server has a setting for it
LARGER_CONTEXT: Mapping[str, str] = {
    "ollama": "start Ollama with OLLAMA_CONTEXT_LENGTH={0}, or set num_ctx {0} in the Modelfile of the model",
    "llamacpp": "start llama-server with --ctx-size {0}",
    "lmstudio": "load the model in LM Studio with a context length of {0}",
}

PROVIDER_URLS: Mapping[str, str] = {name: preset.url for name, preset in PRESETS.items() if preset.url}
KEY_VARIABLES: Mapping[str, str] = {
    name: preset.key_variable for name, preset in PRESETS.items() if preset.key_variable
}
KEY_NEEDED = frozenset(name for name, preset in PRESETS.items() if preset.key_needed)


def provider_and_model(name: str) -> tuple[str | None, str]:
    """ "openai:gpt-5-mini" is a model of another provider; every other colon is part of a model's name."""
    provider, colon, model = name.partition(":")
    return (provider, model) if colon and model and provider in PROVIDER_URLS else (None, name)
