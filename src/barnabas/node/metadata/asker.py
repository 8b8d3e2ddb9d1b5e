"""The requester of a controller's decision, for authorization and quotas."""

from typing import Final, NamedTuple

from barnabas.protocol.well_known import ANONYMOUS


class Asker(NamedTuple):
    """A client, whichever node it asked, or a node that asks for itself."""

    principal: str = ANONYMOUS
    """As text: `User:alice`."""
    host: str = ""
    """Its address, as text."""
    client_id: str | None = None
    is_token: bool = False
    """True if it logged in with a delegation token."""
    api_version: int | None = None
    """Of the request; None is the highest."""
    is_own: bool = False
    """True if this very node asks for itself: it may do what it needs."""


OWN: Final = Asker(is_own=True)
"""This node."""
