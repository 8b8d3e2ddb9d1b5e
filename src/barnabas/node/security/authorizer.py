"""Authorization as the rooms above ask for it: may this principal do that, from there?

Source: Kafka's Authorizer interface (KIP-504), as far as one node needs it.
"""

from typing import Final, NamedTuple, Protocol

from barnabas.node.security.principal import Principal
from barnabas.protocol.acls import Operation, ResourceType


class Caller(NamedTuple):
    """The requester and its address."""

    principal: Principal
    host: str
    """The address of the connection, as text."""
    request: int = -1
    """The key of the API that is asked, for the audit log."""


class Authorizer(Protocol):
    """Decides from memory, so it answers at once."""

    @property
    def is_enabled(self) -> bool:
        """True if anything can be forbidden at all."""

    @property
    def generation(self) -> int:
        """Changes whenever an answer may change, so that answers can be cached."""

    @property
    def notes_grants(self) -> bool:
        """True if all that is allowed is to be noted, so that no answer may be kept."""

    def allows(
        self,
        caller: Caller,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        logs_denial: bool = True,
        logs_grant: bool = True,
    ) -> bool:
        """Return whether the caller may do it.

        `logs_denial` is False where a refusal is not an event (a list is filtered), `logs_grant`
        where what is allowed is only looked up, not done.
        """

    def allows_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Return whether the caller may do it with any resource of the type (KIP-679)."""


class AllowAll:
    """No authorizer is configured: everybody may do everything."""

    is_enabled: Final = False
    notes_grants: Final = False
    generation: Final = 0

    def allows(
        self,
        caller: Caller,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        logs_denial: bool = True,
        logs_grant: bool = True,
    ) -> bool:
        return True

    def allows_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return True


ALLOW_ALL: Final = AllowAll()
