"""InitProducerId (key 22), versions 0-5: KIP-98, 360, 890.

Gives an idempotent producer its id (ids come from the controller in blocks and are never given
twice), and makes a transactional one the owner of its transactional id. Two-phase commit
(KIP-939) is of version 6, which is not stable.
"""

from barnabas.node.broker.apis.transactions.requests import fenced_as
from barnabas.node.broker.authorization import may, may_some
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.transaction.initializing import InitRequest
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

PRODUCER_FENCED_FROM_VERSION = 4


async def handle_init_producer_id(
    services: BrokerServices, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Give an id; without a transactional id a client always gets a new one."""
    error = _forbidden(services, context, request)
    if error:
        return _refuse(error)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refuse(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        producer_id = await services.allocate_producer_id()
        if isinstance(producer_id, ErrorCode):
            return _refuse(producer_id)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    response = await services.transactions.init_producer_id(
        request.transactional_id,
        InitRequest(request.transaction_timeout_ms, request.producer_id, request.producer_epoch),
    )
    response.error_code = fenced_as(context, response.error_code, PRODUCER_FENCED_FROM_VERSION)
    return response


def _forbidden(
    services: BrokerServices, context: RequestContext, request: InitProducerIdRequest
) -> ErrorCode:
    """Why the sender gets no id: whoever may write to some topic gets one to do it with."""
    transactional_id = request.transactional_id
    if transactional_id is not None:
        needed = [Operation.WRITE]
        if request.enable2_pc:
            needed.append(Operation.TWO_PHASE_COMMIT)
        if all(
            may(services, context, operation, ResourceType.TRANSACTIONAL_ID, transactional_id)
            for operation in needed
        ):
            return ErrorCode.NONE
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if may(
        services, context, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, logs_denial=False
    ) or may_some(services, context, Operation.WRITE, ResourceType.TOPIC):
        return ErrorCode.NONE
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _refuse(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
