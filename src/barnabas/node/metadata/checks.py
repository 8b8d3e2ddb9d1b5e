"""Interfaces through which the controller asks for a sender's rights and quota.

The rules are above this room, in `security`: a node is given its checks and its quotas.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from barnabas.node.metadata.asker import Asker
from barnabas.node.metadata.controller.decision import NO_MUTATION_QUOTA, MutationQuota
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.schema import Message

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
