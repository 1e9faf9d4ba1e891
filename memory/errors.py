"""Every error the engine raises.

EngineError
├── DatabaseError          the person's file cannot be used as asked; the file is as it was
│   ├── DatabaseCorrupt    damaged, or not an Olvido memory
│   ├── DatabaseNewer      written by a newer Olvido
│   ├── DatabaseReadOnly   the file or its folder cannot be written
│   ├── DatabaseFull       no space left
│   ├── DatabaseBusy       another process kept it locked for too long
│   └── DatabaseGone       deleted, moved or replaced while it was in use
├── EmbedderError          the embedder failed or answered nonsense
├── LanguagePackError      a language pack is not usable
├── NotFound               no such fact, turn or session
└── Refused                the request is understood and not allowed
"""


class EngineError(Exception):
    """Base of all; the text is a sentence for the user that says what to do."""


class DatabaseError(EngineError):
    """The person's file cannot be used as asked."""


class DatabaseCorrupt(DatabaseError):
    """The file is damaged, or is something else."""


class DatabaseNewer(DatabaseError):
    """The file was written by a newer Olvido."""


class DatabaseReadOnly(DatabaseError):
    """The file or its folder cannot be written."""


class DatabaseFull(DatabaseError):
    """There is no space left where the file lives."""


class DatabaseBusy(DatabaseError):
    """Another process kept the file locked for too long."""


class DatabaseGone(DatabaseError):
    """The file was deleted, moved or replaced while it was in use."""


class EmbedderError(EngineError):
    """The embedder failed or answered with something that is no embedding."""


class LanguagePackError(EngineError):
    """A language pack cannot be read or lacks something."""


class NotFound(EngineError):
    """There is no such thing in this memory."""


class Refused(EngineError):
    """What was asked is understood, and not allowed."""
