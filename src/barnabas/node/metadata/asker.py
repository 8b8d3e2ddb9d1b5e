"""The requester of a controller's decision, and the checks of their rights and quota."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from barnabas.node.metadata.controller.decision import NO_MUTATION_QUOTA, MutationQuota
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.schema import Message
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


# -- the checks, as interfaces
#
# The rules are above this room, in `security`: a node is given its checks and its quotas.


DecideRequest: TypeAlias = Callable[[Message], Awaitable[Any]]
"""Decides a request, or what is left of it."""


class MutationQuotas(Protocol):
    """Knows the quotas on topic changes, which `security` has too."""

    def mutations_of(self, asker: Asker, request: Message) -> MutationQuota:
        """The limits for the changes of one request."""


class NoMutationQuotas:
    """Nobody is limited."""

    def mutations_of(self, asker: Asker, request: Message) -> MutationQuota:
        return NO_MUTATION_QUOTA


class RequestChecks(Protocol):
    """The check between a requester and the decision."""

    async def decide(
        self, asker: Asker, request: Message, image: MetadataImage, decide: DecideRequest
    ) -> Any:
        """The response: to what the asker may not have, a refusal; to the rest, that of `decide`.

        `image` is what the decision will be based on.
        """


class Unchecked:
    """Everybody may ask for everything."""

    async def decide(
        self, asker: Asker, request: Message, image: MetadataImage, decide: DecideRequest
    ) -> Any:
        return await decide(request)
