"""``olvido chat``: the conversation in the terminal."""

from assistant.errors import AssistantError


def chat() -> None:
    """Talk to Olvido in this terminal."""
    raise AssistantError(
        "The conversation is not built yet: this version holds settings, storage and memory commands. "
        "See olvido --help."
    )
