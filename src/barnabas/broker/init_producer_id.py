"""InitProducerId (key 22), versions 0-5: KIP-98, 360.

Gives an idempotent producer its id; ids come from the controller in blocks and are never given
twice. Transactional ids need a transaction coordinator, which is not there yet: they are refused
with a code that clients report at once instead of retrying.
"""

from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


async def handle(
    services: BrokerServices, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Allocate a producer id; without a transactional id a client always gets a new one."""
    if request.transactional_id is not None:
        code = (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            if request.transactional_id
            else ErrorCode.INVALID_REQUEST
        )
        return InitProducerIdResponse(error_code=code)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST)
    producer_id = await services.metadata.allocate_producer_id()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
