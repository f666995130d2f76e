"""The command line: one file per command; what they share is in `app`, `output`, `progress`."""

from totune.cli.app import main

__all__ = ["main"]
