"""What is known of each model provider: where it answers, and the variable its key is customarily kept in."""

from collections.abc import Mapping

OPENAI_URL = "https://api.openai.com/v1"

# unless model.base_url says otherwise; embedded and custom have no address of their own
PROVIDER_URLS: Mapping[str, str] = {
    "kimi": "https://api.moonshot.ai/v1",
    "openai": OPENAI_URL,
    "openrouter": "https://openrouter.ai/api/v1",
    "ollama": "http://localhost:11434/v1",
    "llamacpp": "http://localhost:8080/v1",
    "lmstudio": "http://localhost:1234/v1",
}

# the variable other programs read the key from
KEY_VARIABLES: Mapping[str, str] = {
    "kimi": "MOONSHOT_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "custom": "OPENAI_API_KEY",
}

# these answer nobody without a key
KEY_NEEDED = frozenset({"kimi", "openai", "openrouter"})
