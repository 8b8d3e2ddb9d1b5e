"""UnregisterBroker (key 64), version 0: KIP-631. Decided by the controller.

As in Kafka, a broker that runs may be unregistered too; it is then out of the cluster until it
starts again.
"""

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.nodes import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle_unregister_broker(
    services: BrokerServices, context: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    """Forget a broker that will not come back."""
    response: UnregisterBrokerResponse = await ask_controller(services, context, request)
    return response
