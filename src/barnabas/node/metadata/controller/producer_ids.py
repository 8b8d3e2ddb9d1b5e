"""AllocateProducerIds (API 67, version 0; KIP-730): blocks of a thousand, never given twice."""

from barnabas.node.metadata.controller.brokers import check_broker_epoch
from barnabas.node.metadata.controller.decision import ControllerState, Decision
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_records import ProducerIdsRecord
from barnabas.protocol.messages.transactions import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

BLOCK_SIZE = 1000
PRODUCER_ID_MAX = 2**63 - 1


def allocate_producer_ids(
    state: ControllerState, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    """Give the broker the next block."""
    failure = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    if failure is not None:
        return Decision(AllocateProducerIdsResponse(error_code=failure.code))
    first = state.image.next_producer_id
    if first > PRODUCER_ID_MAX - BLOCK_SIZE:
        return Decision(AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    return Decision(
        AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE),
        [MetadataRecord(record)],
    )
