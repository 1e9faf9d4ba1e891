"""Every error the assistant raises.

AssistantError
├── ConfigError             the settings cannot be used; nothing was started
├── AlreadyServing          another daemon has the data folder
├── NotServing              there is no daemon to ask
├── FolderGone              the data folder was deleted or replaced while it was served
├── NotDelivered            a channel could not deliver a reply now
├── ChannelFailed           a channel cannot go on; somebody has to correct something
├── PartEnded               a part of the daemon came to an end by itself
└── ModelError              the model gave no answer that can be used
    ├── ModelUnreachable    nobody answers at the address
    ├── ModelTimeout        it took too long
    ├── ModelBusy           too many requests, or the account is used up
    ├── ModelFailed         the server failed
    ├── KeyRefused          the key is wrong, or may not use this model
    ├── ModelUnknown        there is no model of that name, or no such API at the address
    ├── RequestRefused      the server does not accept the request
    │   └── ContextTooLong  ... because it is longer than the model can read
    ├── BadReply            an empty answer, or something that is no answer
    ├── CeilingReached      what may be spent in a day is spent
    └── EmbeddedUnavailable the embedded model cannot be started
"""


class AssistantError(Exception):
    """Base of all; the text is a sentence for the user that says what to do."""


class ConfigError(AssistantError):
    """The settings cannot be read, or do not make sense; the text never holds a value that was set."""


class AlreadyServing(AssistantError):
    """Another daemon has the data folder."""


class NotServing(AssistantError):
    """There is no daemon to ask."""


class FolderGone(AssistantError):
    """The data folder was deleted, moved or replaced while the daemon served it."""


class NotDelivered(AssistantError):
    """The reply could not be delivered now; it is kept."""


class ChannelFailed(AssistantError):
    """A channel cannot go on, and waiting does not help."""


class PartEnded(AssistantError):
    """A part of the daemon came to an end by itself; half a daemon is none."""


class ModelError(AssistantError):
    """No usable answer; the text never holds a key. `retryable`: asking again may help, after `wait_seconds`."""

    def __init__(self, sentence: str, *, retryable: bool = False, wait_seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.retryable = retryable
        self.wait_seconds = wait_seconds


class ModelUnreachable(ModelError):
    """Nobody answers at the address, or the connection broke."""


class ModelTimeout(ModelError):
    """It took longer than the settings allow."""


class ModelBusy(ModelError):
    """Too many requests, or the account is used up."""


class ModelFailed(ModelError):
    """The server failed."""


class KeyRefused(ModelError):
    """The key is wrong, or may not use this model."""


class ModelUnknown(ModelError):
    """There is no model of that name, or no such API at the address."""


class RequestRefused(ModelError):
    """The server does not accept the request."""


class ContextTooLong(RequestRefused):
    """The request is longer than the model, or its server, can read."""


class BadReply(ModelError):
    """An empty answer, or something that is no answer."""


class CeilingReached(ModelError):
    """What may be spent in a day is spent: no model is asked."""


class EmbeddedUnavailable(ModelError):
    """The embedded model cannot be started."""
