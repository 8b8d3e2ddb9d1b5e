"""A value that does not fit its column, and the path to it within the record."""

from __future__ import annotations


class MismatchError(Exception):
    """Raised by converters; each container on the way out puts its step before the path."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def within(self, step: str) -> MismatchError:
        """The same below `step`."""
        return MismatchError(self.message, step + self.path)
