"""Deletes single offsets of a group (OffsetDelete, KIP-496), which confluent-kafka does not offer.

Functions raise AdminError.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.kafka.wire_admin import RefusedError, WireAdmin
from barnabas.kafka.wire_routing import GROUP, ask_coordinator
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)


def delete_offsets(admin: WireAdmin, group: str, places: Iterable[tuple[str, int]]) -> None:
    """Have a group forget its offsets of partitions; no member may subscribe to their topics."""
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, number in places:
        part = OffsetDeleteRequestPartition(partition_index=number)
        topics.setdefault(topic, []).append(part)
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(name=name, partitions=found) for name, found in topics.items()
        ],
    )
    _, answer = ask_coordinator(admin, group, GROUP, request, lambda answer: [answer.error_code])
    if answer.error_code != ErrorCode.NONE:
        raise RefusedError(answer.error_code, None, group)
    for topic in answer.topics:
        for part in topic.partitions:
            if part.error_code != ErrorCode.NONE:
                raise RefusedError(part.error_code, None, f"{topic.name}-{part.partition_index}")
