"""Every error the assistant raises.

AssistantError
└── ConfigError    the settings cannot be used; nothing was started
"""


class AssistantError(Exception):
    """Base of all; the text is a sentence for the user that says what to do."""


class ConfigError(AssistantError):
    """The settings cannot be read, or do not make sense; the text never holds a value that was set."""
