"""Replay at load: the batches of a partition into its shard.

Source: Kafka's CoordinatorLoaderImpl.
"""

import logging

from barnabas.base.disk import Buffer
from barnabas.node.coordinator.decision import Shard
from barnabas.node.coordinator.record_codec import RecordTypes, decode_record
from barnabas.protocol.records.batch import CorruptBatchError, check_crc, iterate_headers
from barnabas.protocol.records.control import EndTxn, decode_control
from barnabas.protocol.records.records import decode_records

telemetry = logging.getLogger(__name__)


def replay_batches(data: Buffer, shard: Shard, types: RecordTypes) -> int:
    """Replay whole batches; return the offset after the last of them.

    A record of an unknown type, from a later version, is left out with a warning. Raises
    DecodeError for what is malformed, and CorruptBatchError for damage. What the disk of this
    node has garbled would otherwise pass for what was written, while other replicas know better;
    Kafka's loader does not look.
    """
    end_offset = 0
    for position, header in iterate_headers(data):
        end_offset = header.next_offset
        if not check_crc(data, position, header):
            raise CorruptBatchError(f"the batch at offset {header.base_offset} is damaged")
        for record in decode_records(data, position):
            if header.is_control:
                marker = decode_control(record)
                if isinstance(marker, EndTxn):
                    shard.replay_end_transaction(header.producer_id, marker.is_commit)
                continue
            decoded = decode_record(record, types)
            if decoded is None:
                telemetry.warning("record %d has an unknown type", record.offset)
                continue
            shard.replay(record.offset, header.producer_id, decoded)
    return end_offset
