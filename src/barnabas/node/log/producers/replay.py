"""Recording a batch that is in the log, on leaders and followers: followers and recovery."""

from barnabas.base.disk import Buffer
from barnabas.node.log.producers.state import CompletedTransaction, ProducerState
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import CONTROL_MASK, BatchHeader
from barnabas.protocol.records.control import EndTxn, decode_control, read_end_txn
from barnabas.protocol.records.records import decode_records


def read_marker(buffer: Buffer, position: int) -> tuple[EndTxn, int] | None:
    """The end-of-transaction marker of a control batch and its timestamp; None: no marker.

    Raises DecodeError for a malformed one.
    """
    for record in decode_records(buffer, position):
        marker = decode_control(record)
        return (marker, record.timestamp) if isinstance(marker, EndTxn) else None
    return None  # cleaned: all that is left of it is the header


def record_batch(
    state: ProducerState, header: BatchHeader, buffer: Buffer, position: int
) -> CompletedTransaction | None:
    """Record the batch at `position`, with the offsets in its header.

    Returns the transaction that it ends, if it does.
    """
    if not header[5] & CONTROL_MASK:
        state.record_data(header, header[0], header[8])
        return None
    marker = _marker_of(header, buffer, position)
    if marker is None:
        return None
    return state.record_marker(header, marker[0], header.base_offset, marker[1])


def check_coordinator_batch(
    state: ProducerState,
    header: BatchHeader,
    buffer: Buffer,
    position: int,
    terms: AppendTerms | None = None,
) -> ErrorCode:
    """Check the producer epoch of a coordinator's batch; sequences are not checked."""
    if not header.is_control:
        return state.check_terms(header, terms) or state.check(header, with_sequence=False)
    marker = _marker_of(header, buffer, position)
    if marker is None:
        return ErrorCode.NONE
    version = 0 if terms is None else terms.transaction_version
    return state.check_marker(header, marker[0], version)


def _marker_of(header: BatchHeader, buffer: Buffer, position: int) -> tuple[EndTxn, int] | None:
    """As `read_marker`; nearly every marker is of the one form that is known by its bytes."""
    marker = read_end_txn(header, buffer, position)
    return read_marker(buffer, position) if marker is None else (marker, header.base_timestamp)
