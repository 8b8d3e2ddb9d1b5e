"""Failures that a person can cause and cure, in every wing, and the hint for a missing package."""

from typing import ClassVar


class ShownError(Exception):
    """A failure whose text is all that a person needs: programs show it in one line.

    Any other exception that reaches the end of a program is a bug.
    """

    is_wrong_usage: ClassVar[bool] = False
    """True if the command line or a file that it names is wrong, not what was found."""
    hint: ClassVar[str | None] = None
    """A remedy to print with the failure, if all failures of the class have the same one."""


def install_hint(extra: str) -> str:
    """Return the command that installs an extra, and where to type it.

    It does not use the package's name, which belongs to another project on the public index.
    """
    return f"pip install '.[{extra}]' in the checkout of Barnabas"


class ConfigError(ShownError, ValueError):
    """A key whose value cannot be used. Secrets never appear in the message."""

    is_wrong_usage = True

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message
