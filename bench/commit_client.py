"""Clients that do nothing but commit offsets.

`python -m bench.commit_client BOOTSTRAP TOPIC SECONDS`: each of some connections has a group of its
own and one request under way, as consumers have. Prints as JSON how many requests were answered per
second after the warm-up, and in all.
"""

import json
import selectors
import sys
import time

from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from bench.wire import ERRORS, WireClient

CONNECTIONS = 20
WARM_UP_SECONDS = 2.0
FIND_COORDINATOR_VERSION = 4
OFFSET_COMMIT_VERSION = 8
READY_SECONDS = 30.0


def main(port: int, topic: str, seconds: float) -> None:
    clients = [WireClient(port) for _ in range(CONNECTIONS)]
    frames = [commit_frame(f"bench-commits-{number}", topic) for number in range(CONNECTIONS)]
    for number, client in enumerate(clients):
        await_coordinator(client, number, topic)
    selector = selectors.DefaultSelector()
    for client, frame in zip(clients, frames, strict=True):
        client.socket.sendall(frame)
        selector.register(client.socket, selectors.EVENT_READ, (client, frame))
    before = _serve(selector, WARM_UP_SECONDS)
    began = time.monotonic()
    answered = _serve(selector, seconds)
    rate = answered / (time.monotonic() - began)
    json.dump({"commits_s": rate, "commits": before + answered}, sys.stdout)
    for client in clients:
        client.close()


def _serve(selector: selectors.BaseSelector, seconds: float) -> int:
    """Answer each response with the next request, for so long; returns how many came."""
    answered = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for key, _ in selector.select(1.0):
            client, frame = key.data
            client.receive(int.from_bytes(client.receive(4), "big"))
            client.socket.sendall(frame)
            answered += 1
    return answered


def _request(group: str, topic: str) -> OffsetCommitRequest:
    places = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=places)]
    for place in places:
        place.committed_metadata = ""
    return OffsetCommitRequest(group_id=group, topics=topics)


def commit_frame(group: str, topic: str) -> bytes:
    frame = encode_request(8, OFFSET_COMMIT_VERSION, 1, "bench", _request(group, topic))
    return len(frame).to_bytes(4, "big") + bytes(frame)


def await_coordinator(client: WireClient, number: int, topic: str) -> None:
    """Until a commit of the group is taken. Raises RuntimeError when that takes too long."""
    group = f"bench-commits-{number}"
    deadline = time.monotonic() + READY_SECONDS
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    error = 0
    while time.monotonic() < deadline:
        found = client.request(10, FIND_COORDINATOR_VERSION, find)
        assert isinstance(found, FindCoordinatorResponse)
        error = found.coordinators[0].error_code
        if not error:
            answer = client.request(8, OFFSET_COMMIT_VERSION, _request(group, topic))
            assert isinstance(answer, OffsetCommitResponse)
            error = answer.topics[0].partitions[0].error_code
            if not error:
                return
        time.sleep(0.05)
    raise RuntimeError(f"no commit is taken: {ERRORS[error].name}")


if __name__ == "__main__":
    main(int(sys.argv[1].rpartition(":")[2]), sys.argv[2], float(sys.argv[3]))
