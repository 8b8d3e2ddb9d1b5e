"""Requests that the controller decides: how the broker passes them on.

It answers these alone; others are checked or completed by the handlers of their families.

CreateTopics (key 19), versions 2-7: KIP-4, 464, 525, 516, 599.

DeleteTopics (key 20), versions 1-6: KIP-4, 516, 599.

CreatePartitions (key 37), versions 0-3: KIP-195, 599.

CreateAcls (key 30), versions 1-3: KIP-140, 290.

DeleteAcls (key 31), versions 1-3: KIP-140, 290.

AlterClientQuotas (key 49), versions 0-1: KIP-546, 599, 612.

AlterUserScramCredentials (key 51), version 0: KIP-554.

ElectLeaders (key 43), versions 0-2: KIP-183, 460.

AlterPartitionReassignments (key 45), versions 0-1: KIP-455, 860.

The answer says that replicas begin to move, not that they have; ListPartitionReassignments says
which still do.

ListPartitionReassignments (key 46), version 0: KIP-455.

UpdateFeatures (key 57), versions 0-2: KIP-584, 778, 853, 1022.

UnregisterBroker (key 64), version 0: KIP-631.

As in Kafka, a broker that runs may be unregistered too; it is then out of the cluster until it
starts again.

DescribeQuorum (key 55), versions 0-2: KIP-595, 836, 853. Answered by the quorum's leader.

AddRaftVoter (key 80), versions 0-1: KIP-853. Carried out by the quorum's leader.

RemoveRaftVoter (key 81), version 0: KIP-853. Carried out by the quorum's leader.
"""

from typing import Any

from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.versions import fit
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.asker import Asker
from barnabas.protocol.schema import Message


def asker_of(context: RequestContext) -> Asker:
    """The sender of a request, as reported to the controller."""
    return Asker(
        str(context.principal),
        context.client_host,
        context.client_id,
        is_token=client_state(context.connection).is_token,
        api_version=context.api_version,
    )


async def ask_controller(
    services: BrokerServices, context: RequestContext, request: Message
) -> Any:
    """The controller's response to a client's request.

    A `timeout_ms` of the request limits the wait; without one, or if it is not positive, there is
    no limit but the client's own.
    """
    timeout_ms = getattr(request, "timeout_ms", 0)
    response = await services.metadata.handle(
        request,
        asker=asker_of(context),
        api_version=context.api_version,
        timeout_ms=timeout_ms if timeout_ms > 0 else None,
    )
    return fit(response, context.api_version)
