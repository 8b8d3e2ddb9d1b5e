"""Functions with which handlers ask the authorizer about the sender of a request.

A handler that finds a right missing answers with the error of its resource, and as if the
resource were not there where even its existence is a secret.
"""

from collections.abc import Iterable
from typing import Protocol

from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.grants import Grants
from barnabas.node.loop.pauses import in_turns
from barnabas.node.security.authorizer import Authorizer
from barnabas.protocol.acls import CLUSTER_NAME, Operation, ResourceType


class HasAuthorizer(Protocol):
    """The services of any listener."""

    @property
    def authorizer(self) -> Authorizer:
        """The authorizer of the node."""


def may(
    services: HasAuthorizer,
    context: RequestContext,
    operation: Operation,
    resource_type: ResourceType,
    name: str = CLUSTER_NAME,
    *,
    logs_denial: bool = True,
    logs_grant: bool = True,
) -> bool:
    """Return whether the sender of a request may do this; `name` is left out for the cluster."""
    authorizer = services.authorizer
    return not authorizer.is_enabled or authorizer.allows(
        context.caller,
        operation,
        resource_type,
        name,
        logs_denial=logs_denial,
        logs_grant=logs_grant,
    )


def may_some(
    services: HasAuthorizer,
    context: RequestContext,
    operation: Operation,
    resource_type: ResourceType,
) -> bool:
    """Return whether the sender may do this with any resource of the type (KIP-679)."""
    authorizer = services.authorizer
    return not authorizer.is_enabled or authorizer.allows_some(
        context.caller, operation, resource_type
    )


def allowed(
    services: HasAuthorizer,
    context: RequestContext,
    operation: Operation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    logs_denial: bool = True,
    logs_grant: bool = True,
) -> set[str]:
    """Those of `names` with which the sender may do this; each is asked once."""
    authorizer = services.authorizer
    if not authorizer.is_enabled:
        return set(names)
    caller = context.caller
    asked = set(names)
    if len(asked) == 1:
        (name,) = asked
        is_allowed = authorizer.allows(
            caller,
            operation,
            resource_type,
            name,
            logs_denial=logs_denial,
            logs_grant=logs_grant,
        )
        return asked if is_allowed else set()
    return {
        name
        for name in asked
        if authorizer.allows(
            caller,
            operation,
            resource_type,
            name,
            logs_denial=logs_denial,
            logs_grant=logs_grant,
        )
    }


async def allowed_in_turns(
    services: HasAuthorizer,
    context: RequestContext,
    operation: Operation,
    resource_type: ResourceType,
    names: Iterable[str],
) -> set[str]:
    """As `allowed`, of a list of any length; other clients are served between its parts.

    Requests that administer something need it: each of their refusals has a line in the audit log.
    """
    authorizer = services.authorizer
    if not authorizer.is_enabled:
        return set(names)
    caller = context.caller
    return {
        name
        async for name in in_turns(dict.fromkeys(names))
        if authorizer.allows(caller, operation, resource_type, name)
    }


def current_grants(services: HasAuthorizer, context: RequestContext) -> Grants | None:
    """Return what the sender may write and read, for frequent requests; None: everything.

    It is another object whenever an answer may have changed.
    """
    authorizer = services.authorizer
    if not authorizer.is_enabled:
        return None
    state = client_state(context.connection)
    may_be_kept = context.principal is state.principal and not authorizer.notes_grants
    grants = state.grants
    if grants is None or not may_be_kept or grants.generation != authorizer.generation:
        grants = Grants(authorizer, context.caller)
        if may_be_kept:
            state.grants = grants
    return grants
