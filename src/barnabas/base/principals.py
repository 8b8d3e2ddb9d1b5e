"""Principals as text (`User:alice`), for rooms below `security`, which only pass them on."""

from typing import Final

ANONYMOUS: Final = "User:ANONYMOUS"
"""Everyone, while nothing authenticates; `security.principal` has it as an object."""
