"""A member of a share group that says exactly what a test wants."""

import uuid
from collections.abc import Sequence
from typing import Any

from barnabas.base.ids import uuid_to_text
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_fetch
from barnabas.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.share_state import (
    InitializeShareGroupStatePartitionData,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateData,
)
from barnabas.protocol.records.batch import iterate_headers
from support.node_process import wait_until
from support.raw_client import RawClient

SHARE = 2
AckBatches = Sequence[tuple[int, int, int | list[int]]]


def begin_group(raw: RawClient, group_id: str, topic_id: Any, start_offset: int = 0) -> None:
    """Have the share coordinator keep the state of partition 0, as a group coordinator would."""
    key = f"{group_id}:{uuid_to_text(topic_id)}:0"
    found: list[str] = []

    def find() -> bool:
        asked = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
        (answer,) = raw.call(asked, FindCoordinatorResponse).coordinators
        found[:] = [f"{answer.host}:{answer.port}"]
        return answer.error_code == ErrorCode.NONE

    wait_until(find, "a share coordinator")
    request = InitializeShareGroupStateRequest(
        group_id=group_id,
        topics=[
            InitializeStateData(
                topic_id=topic_id,
                partitions=[
                    InitializeShareGroupStatePartitionData(
                        partition=0, state_epoch=1, start_offset=start_offset
                    )
                ],
            )
        ],
    )
    with RawClient(found[0]) as coordinator:

        def initialize() -> bool:
            answer = coordinator.call(request, InitializeShareGroupStateResponse)
            return answer.results[0].partitions[0].error_code == ErrorCode.NONE

        wait_until(initialize, "the share group's state")


class Delivered:
    """A partition's part of a response."""

    def __init__(self, entry: share_fetch.ShareFetchPartitionData) -> None:
        self.error = ErrorCode.of(entry.error_code)
        self.ack_error = ErrorCode.of(entry.acknowledge_error_code)
        self.acquired = [
            (records.first_offset, records.last_offset, records.delivery_count)
            for records in entry.acquired_records
        ]
        self.batches = [
            (header.base_offset, header.last_offset)
            for _, header in iterate_headers(entry.records or b"")
        ]


class ShareMember:
    """One member with one connection; counts its session's epochs."""

    def __init__(self, bootstrap_servers: str, group_id: str, topic_id: Any) -> None:
        self.raw = RawClient(bootstrap_servers)
        self.group_id = group_id
        self.member_id = str(uuid.uuid4())
        self.topic_id = topic_id
        self.epoch = 0

    def close(self) -> None:
        self.raw.socket.close()

    def send_fetch(self, acks: AckBatches = (), *, version: int = 2, **fields: Any) -> None:
        """Ask for records of partition 0, and acknowledge some."""
        batches = [
            share_fetch.AcknowledgementBatch(
                first_offset=first,
                last_offset=last,
                acknowledge_types=types if isinstance(types, list) else [types],
            )
            for first, last, types in acks
        ]
        topics = [
            share_fetch.FetchTopic(
                topic_id=self.topic_id,
                partitions=[
                    share_fetch.FetchPartition(partition_index=0, acknowledgement_batches=batches)
                ],
            )
        ]
        wanted: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "share_session_epoch": self.epoch,
            "max_wait_ms": 10_000,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": topics,
        }
        self.raw.send(
            ApiKey.SHARE_FETCH, version, share_fetch.ShareFetchRequest(**{**wanted, **fields})
        )
        self.epoch += 1

    def receive_fetch(self, *, version: int = 2) -> share_fetch.ShareFetchResponse:
        """The answer to the last `send_fetch`."""
        return self.raw.receive(ApiKey.SHARE_FETCH, version, share_fetch.ShareFetchResponse)

    def fetch(self, acks: AckBatches = (), *, version: int = 2, **fields: Any) -> Delivered:
        """As `send_fetch`: the news of partition 0."""
        self.send_fetch(acks, version=version, **fields)
        response = self.receive_fetch(version=version)
        assert response.error_code == ErrorCode.NONE
        for topic in response.responses:
            for entry in topic.partitions:
                return Delivered(entry)
        return Delivered(share_fetch.ShareFetchPartitionData())

    def refused(self, acks: AckBatches = (), *, version: int = 2, **fields: Any) -> str:
        """As `fetch`: the error of the whole answer."""
        self.send_fetch(acks, version=version, **fields)
        return ErrorCode.of(self.receive_fetch(version=version).error_code).name

    def acknowledge(
        self, acks: AckBatches, *, version: int = 2, **fields: Any
    ) -> share_fetch.ShareAcknowledgeResponse:
        """Acknowledge records of partition 0."""
        topics = [
            share_fetch.AcknowledgeTopic(
                topic_id=fields.pop("topic_id", self.topic_id),
                partitions=[
                    share_fetch.AcknowledgePartition(
                        partition_index=fields.pop("partition", 0),
                        acknowledgement_batches=[
                            share_fetch.AcknowledgementBatch(
                                first_offset=first,
                                last_offset=last,
                                acknowledge_types=types if isinstance(types, list) else [types],
                            )
                            for first, last, types in acks
                        ],
                    )
                ],
            )
        ]
        wanted: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "share_session_epoch": self.epoch,
            "topics": topics,
        }
        request = share_fetch.ShareAcknowledgeRequest(**{**wanted, **fields})
        response = self.raw.call(request, share_fetch.ShareAcknowledgeResponse, version)
        if not response.error_code:
            self.epoch += 1
        return response

    def acknowledged(self, acks: AckBatches, *, version: int = 2, **fields: Any) -> str:
        """As `acknowledge`: the error of the answer, or else that of partition 0."""
        response = self.acknowledge(acks, version=version, **fields)
        if response.error_code:
            return f"whole: {ErrorCode.of(response.error_code).name}"
        (topic,) = response.responses
        return ErrorCode.of(topic.partitions[0].error_code).name
