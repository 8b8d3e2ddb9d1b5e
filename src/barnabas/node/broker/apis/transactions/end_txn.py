"""EndTxn (key 26), versions 0-5: KIP-98, 890.

Commits or aborts a transaction. The answer comes when the decision is in the log for good; the
markers follow. From version 5 on it names the producer id and epoch for the next transaction.
"""

from collections.abc import Awaitable

from barnabas.node.broker.apis.transactions.requests import fenced_as
from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.transaction.ending import EndRequest
from barnabas.node.coordinator.transaction.service import client_version_of
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import EndTxnRequest, EndTxnResponse

PRODUCER_FENCED_FROM_VERSION = 2
VERSION_2_FROM_VERSION = 5


def handle_end_txn(
    services: BrokerServices, context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    """End a transaction."""
    if not may(
        services,
        context,
        Operation.WRITE,
        ResourceType.TRANSACTIONAL_ID,
        request.transactional_id,
    ):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    outcome = services.transactions.end(
        request.transactional_id,
        EndRequest(
            request.producer_id,
            request.producer_epoch,
            request.committed,
            client_version_of(context.api_version, VERSION_2_FROM_VERSION),
        ),
    )
    if isinstance(outcome, EndTxnResponse):
        return _level(context, outcome)
    return _later(context, outcome)


async def _later(context: RequestContext, outcome: Awaitable[EndTxnResponse]) -> EndTxnResponse:
    return _level(context, await outcome)


def _level(context: RequestContext, response: EndTxnResponse) -> EndTxnResponse:
    response.error_code = fenced_as(context, response.error_code, PRODUCER_FENCED_FROM_VERSION)
    return response
