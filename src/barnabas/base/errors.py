"""The failures that a person can cause and cure, in every wing."""

from typing import ClassVar


class ShownError(Exception):
    """A failure whose text is all that a person needs: programs show it in one line.

    Any other exception that reaches a program's end is a defect of ours.
    """

    is_wrong_usage: ClassVar[bool] = False
    """Whether the command line or a file that it names is wrong, not what was found."""
