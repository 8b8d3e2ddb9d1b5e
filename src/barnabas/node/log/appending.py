"""Appending to a log.

The order: the batch is checked, its producer's state is consulted, offsets are patched in place,
one write puts it into the active segment, and only then is anything else changed. A failing
write leaves the log as it was, and takes the log directory offline. Source: Kafka's UnifiedLog.
"""

from collections.abc import Sequence

from barnabas.base.checksum import crc32c
from barnabas.base.disk import Buffer
from barnabas.node.log.checkpoints import EPOCH_MAX
from barnabas.node.log.config import LONG_MAX, LogConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.log.log_state import LogState
from barnabas.node.log.plain_append import append_own, append_plain, segment_ms
from barnabas.node.log.producers.replay import check_coordinator_batch, record_batch
from barnabas.node.log.producers.state import CompletedTransaction
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.node.log.retention import raise_log_start, truncate_fully_and_start_at
from barnabas.node.log.stepped_check import CheckedBatch
from barnabas.node.log.validator import AppendOrigin, Rejection, prepare_client_batch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    LOG_OVERHEAD_BYTES,
    NO_OFFSET,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    TimestampType,
    iterate_headers,
    patch,
    read_header,
)

_CLIENT = AppendOrigin.CLIENT


class AppendResult:
    """The outcome of an append.

    With an `error` nothing was stored. `is_duplicate`: it was stored before, at these offsets.
    `log_append_time_ms` is -1 unless the topic's timestamps are the broker's.
    """

    __slots__ = (
        "error",
        "first_offset",
        "is_duplicate",
        "last_offset",
        "log_append_time_ms",
        "message",
        "record_errors",
    )

    def __init__(
        self,
        error: ErrorCode,
        first_offset: int = NO_OFFSET,
        last_offset: int = NO_OFFSET,
        log_append_time_ms: int = NO_TIMESTAMP,
        is_duplicate: bool = False,
        message: str | None = None,
        record_errors: Sequence[tuple[int, str | None]] = (),
    ) -> None:
        self.error = error
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.is_duplicate = is_duplicate
        self.message = message
        self.record_errors = record_errors


def append_as_leader(
    log: LogState,
    data: Buffer,
    *,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin = _CLIENT,
    terms: AppendTerms | None = None,
    checked: CheckedBatch | None = None,
) -> AppendResult:
    """Validate and append; offsets and epoch are patched into `data` in place.

    A client's `data` is one batch, a coordinator's or the quorum leader's any number. `data`
    belongs to the log from now on and must not be changed. `terms` bind what is
    transactional; without them the caller is trusted to know that it is under way. `checked` is
    what an earlier check of a client's compressed batch found.
    """
    if log.is_closed or log.log_directory.is_offline:
        raise LogDirFailure(log.log_directory.path)
    if isinstance(data, bytes):
        data = bytearray(data)
    if origin is not _CLIENT:
        first_offset = append_own(log, data, leader_epoch)
        if first_offset >= 0:
            return AppendResult(ErrorCode.NONE, first_offset, log.log_end_offset - 1)
        return _append_trusted(log, data, leader_epoch, now_ms, origin, terms)
    view = data if type(data) is memoryview else memoryview(data)
    if checked is not None:
        if checked.config is not log.config:
            return _rejected(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                "the topic was changed while the batch was checked; send it again",
            )
        if checked.data is not None:
            data = view = checked.data
    plain_offsets = append_plain(
        log, (view,), leader_epoch, now_ms, are_decompressed=checked is not None
    )
    if plain_offsets:
        return AppendResult(ErrorCode.NONE, plain_offsets[0], log.log_end_offset - 1)
    return _append_client(log, data, leader_epoch, now_ms, terms, checked)


def _append_client(
    log: LogState,
    data: bytearray | memoryview,
    leader_epoch: int,
    now_ms: int,
    terms: AppendTerms | None = None,
    checked: CheckedBatch | None = None,
) -> AppendResult:
    """Append any batch of a client, or say why not."""
    config = log.config
    try:
        header = read_header(data)
        size = len(data)
        if header.batch_length + 12 != size:
            return _rejected(ErrorCode.INVALID_RECORD, "the data is not exactly one batch")
        if size > config.max_message_bytes or size > config.segment_bytes:
            return _too_large(size, config)
        prepared = prepare_client_batch(
            data,
            header,
            config,
            now_ms,
            is_checked=checked is not None,
            is_in_form=checked is not None and checked.data is not None,
        )
    except CorruptBatchError as error:
        return _rejected(error.error, str(error))
    if isinstance(prepared, Rejection):
        return _rejected(prepared.error, prepared.message, prepared.record_errors)
    data, header = prepared
    if len(data) > size and len(data) > min(config.max_message_bytes, config.segment_bytes):
        return _too_large(len(data), config)  # it was recompressed, to no avail
    producer_id = header.producer_id
    if producer_id >= 0:
        duplicate = log.producers.find_duplicate(header)
        if duplicate is not None:
            return AppendResult(
                ErrorCode.NONE,
                duplicate.first_offset,
                duplicate.last_offset,
                duplicate.timestamp
                if config.timestamp_type is TimestampType.LOG_APPEND_TIME
                else NO_TIMESTAMP,
                is_duplicate=True,
            )
        refused = log.producers.check_terms(header, terms) or log.producers.check(
            header, with_sequence=True
        )
        if refused:
            return _refuse_producer(log, refused, header)
    first_offset = log.log_end_offset
    last_offset = first_offset + header.last_offset_delta
    patch(data, 0, first_offset, leader_epoch)
    max_timestamp = header.max_timestamp
    _write(log, data, len(data), first_offset, last_offset, max_timestamp, last_offset, now_ms)
    if leader_epoch != log.epochs.latest_epoch and leader_epoch >= 0:
        log.epochs.assign(leader_epoch, first_offset)
    if producer_id >= 0:
        log.producers.record_data(header, first_offset, max_timestamp)
    log.tail.append(data, last_offset + 1)
    return AppendResult(
        ErrorCode.NONE,
        first_offset,
        last_offset,
        now_ms if config.timestamp_type is TimestampType.LOG_APPEND_TIME else NO_TIMESTAMP,
    )


def _append_trusted(
    log: LogState,
    data: bytearray | memoryview,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin,
    terms: AppendTerms | None,
) -> AppendResult:
    """Append what this node made itself: any number of batches, by one write or not at all."""
    try:
        headers = list(iterate_headers(data))
    except CorruptBatchError as error:
        return _rejected(error.error, str(error))
    if not headers:
        return _rejected(ErrorCode.INVALID_RECORD, "there is no batch")
    offset = log.log_end_offset
    for position, header in headers:
        if header.size_bytes > log.config.max_message_bytes and origin is not AppendOrigin.RAFT:
            return _too_large(header.size_bytes, log.config)
        if header.producer_id >= 0:
            refused = check_coordinator_batch(log.producers, header, data, position, terms)
            if refused:
                return _refuse_producer(log, refused, header)
    for position, header in headers:
        patch(data, position, offset, leader_epoch)
        offset += header.last_offset_delta + 1
    patched = [(position, read_header(data, position)) for position, _ in headers]
    return _append_patched(log, data, patched, now_ms)


def append_as_follower(
    log: LogState,
    data: Buffer,
    *,
    leader_epoch: int = EPOCH_MAX,
    leader_high_watermark: int = LONG_MAX,
    keeps_good_part: bool = True,
) -> AppendResult:
    """Append batches as the leader stored them, with its offsets and epochs.

    These are not covered by the CRC, so those that a leader of `leader_epoch` cannot have are
    damage: later epochs, and a gap that ends above its high watermark, below which alone
    compaction takes records away. A batch cut off at the end is left out. Returns
    CORRUPT_MESSAGE for a bad batch, and OFFSET_OUT_OF_RANGE for offsets that do not go on
    from this log's end. What comes before that is appended, if there is anything and
    `keeps_good_part`: the next fetch then begins where the leader sees its damage too.
    """
    log.check_online()
    headers: list[tuple[int, BatchHeader]] = []
    view = memoryview(data)
    rejected = _check_fetched(log, view, headers, leader_epoch, leader_high_watermark)
    if rejected is not None and not (keeps_good_part and headers):
        return rejected
    if not headers:
        return AppendResult(ErrorCode.NONE, log.log_end_offset, log.log_end_offset - 1)
    position, header = headers[-1]
    view = view[: position + header.size_bytes]
    now_ms = log.log_directory.clock.now_ms()
    start_offset = log.log_start_offset
    if headers[0][1].base_offset >= start_offset:
        return _append_patched(log, view, headers, now_ms, keep_tail=False)
    # No batch may lie before the segment that holds it.
    _start_anew_at(log, headers[0][1].base_offset)
    result = _append_patched(log, view, headers, now_ms, keep_tail=False)
    raise_log_start(log, start_offset)
    log.high_watermark = max(log.high_watermark, start_offset)
    return result


def _check_fetched(
    log: LogState,
    view: memoryview,
    headers: list[tuple[int, BatchHeader]],
    leader_epoch: int,
    leader_high_watermark: int,
) -> AppendResult | None:
    """Gather the good batches in `headers`, up to the first that is not; what that has."""
    next_offset = log.log_end_offset
    is_after_gap = False
    try:
        for position, header in iterate_headers(view, allow_partial_tail=True):
            base_offset, batch_length, epoch, _, crc, _, last_offset_delta = header[:7]
            crc_start = position + ATTRIBUTES_POSITION
            if crc32c(view[crc_start : position + batch_length + LOG_OVERHEAD_BYTES]) != crc:
                return _rejected(ErrorCode.CORRUPT_MESSAGE, "a batch fails its CRC")
            if epoch > leader_epoch:
                return _rejected(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"a batch of epoch {epoch} from the leader of epoch {leader_epoch}",
                )
            if base_offset > next_offset and base_offset > leader_high_watermark:
                return _rejected(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"offset {base_offset} comes after {next_offset - 1}, and only "
                    f"{leader_high_watermark} are committed",
                )
            # The first batch may start earlier if this log is empty: the leader's log start
            # can lie in the middle of a batch.
            if base_offset < next_offset and not (
                not headers
                and log.log_end_offset == log.log_start_offset
                and base_offset + last_offset_delta >= next_offset
            ):
                if is_after_gap:
                    headers.pop()  # it may be this that is further on than it was written
                return _rejected(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"offset {base_offset} comes after {next_offset - 1}",
                )
            is_after_gap = base_offset > next_offset
            next_offset = base_offset + last_offset_delta + 1
            headers.append((position, header))
    except CorruptBatchError as error:
        return _rejected(error.error, str(error))
    return None


def _start_anew_at(log: LogState, offset: int) -> None:
    try:
        truncate_fully_and_start_at(log, offset)
    except OSError as error:
        raise log.fail(error) from error


def _append_patched(
    log: LogState,
    data: Buffer,
    headers: list[tuple[int, BatchHeader]],
    now_ms: int,
    *,
    keep_tail: bool = True,
) -> AppendResult:
    """Write batches whose offsets are final, and take all that follows from them.

    A follower keeps no tail in memory: few read from it, and each batch would be a copy.
    """
    first_offset, last_offset = headers[0][1].base_offset, headers[-1][1].last_offset
    max_timestamp, max_timestamp_offset = NO_TIMESTAMP, first_offset
    for _, header in headers:
        if header[8] > max_timestamp:
            max_timestamp, max_timestamp_offset = header.max_timestamp, header.last_offset
    size = len(data)
    _write(log, data, size, first_offset, last_offset, max_timestamp, max_timestamp_offset, now_ms)
    view = memoryview(data)
    latest_epoch = log.epochs.latest_epoch
    for position, header in headers:
        epoch = header[2]
        if epoch != latest_epoch and epoch >= 0:
            log.epochs.assign(epoch, header.base_offset)
            latest_epoch = log.epochs.latest_epoch
        if header[9] >= 0:
            completed = record_batch(log.producers, header, data, position)
            if completed is not None and completed.is_aborted:
                _index_aborted(log, completed)
        if keep_tail:
            log.tail.append(
                view[position : position + header.size_bytes] if len(headers) > 1 else view,
                header.next_offset,
            )
    if not keep_tail:
        log.tail.clear(log.log_end_offset)
    return AppendResult(ErrorCode.NONE, first_offset, last_offset)


def _write(
    log: LogState,
    data: Buffer,
    size_bytes: int,
    first_offset: int,
    last_offset: int,
    max_timestamp: int,
    max_timestamp_offset: int,
    now_ms: int,
) -> None:
    """Put batches into the active segment, after rolling it if they do not belong there."""
    config = log.config
    try:
        if log.active.is_full(
            size_bytes,
            last_offset,
            max_timestamp,
            now_ms,
            config.segment_bytes,
            segment_ms(log),
            config.index_entries_max,
            config.index_interval_bytes,
        ):
            log.start_segment(first_offset, now_ms)
        log.active.append(
            (data,),
            size_bytes,
            last_offset,
            max_timestamp,
            max_timestamp_offset,
            config.index_interval_bytes,
        )
    except OSError as error:
        raise log.fail(error) from error
    log.log_end_offset = last_offset + 1


def _index_aborted(log: LogState, completed: CompletedTransaction) -> None:
    try:
        log.active.files.append_aborted(AbortedTransaction(*completed[:4]))
    except OSError as error:
        raise log.fail(error) from error
    log.flusher.unsynced_paths.add(log.active.files.txn_index_path)
    log.flusher.unsynced_dirs.add(log.directory)


def _refuse_producer(log: LogState, error: ErrorCode, header: BatchHeader) -> AppendResult:
    entry = log.producers.producers.get(header.producer_id)
    if error is ErrorCode.INVALID_TXN_STATE or entry is None:
        return _rejected(
            error, f"no transaction of producer {header.producer_id} is known to be under way"
        )
    return _rejected(
        error,
        f"producer {header.producer_id} sent epoch {header.producer_epoch}, sequence "
        f"{header.base_sequence} after epoch {entry.epoch}, sequence {entry.last_sequence}",
    )


def _rejected(
    error: ErrorCode, message: str, record_errors: Sequence[tuple[int, str | None]] = ()
) -> AppendResult:
    return AppendResult(error, message=message, record_errors=record_errors)


def _too_large(size_bytes: int, config: LogConfig) -> AppendResult:
    if size_bytes > config.max_message_bytes:
        return _rejected(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size_bytes} bytes is above max.message.bytes {config.max_message_bytes}",
        )
    return _rejected(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"a batch of {size_bytes} bytes is above segment.bytes {config.segment_bytes}",
    )
