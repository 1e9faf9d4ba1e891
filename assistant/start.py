"""The program ``olvido``: Ctrl-C while the command line is still being loaded ends it without a word."""

import sys


def main() -> None:
    """Entry point of the ``olvido`` command."""
    try:
        from assistant.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
