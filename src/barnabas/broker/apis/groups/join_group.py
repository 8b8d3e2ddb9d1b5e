"""JoinGroup (key 11), versions 0-9: KIP-62, 345, 394, 559, 800, 814.

The answer comes when the group's next generation begins.
"""

from collections.abc import Awaitable

from barnabas.broker.apis.groups.requests import client_of
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


def handle_join_group(
    services: BrokerServices, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    """Join a group."""
    return services.groups.classics.join(request, client_of(context))
