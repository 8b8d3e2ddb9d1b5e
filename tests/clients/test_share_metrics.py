"""Share fetches and acknowledgements that fail are counted, on one node and on three."""

from __future__ import annotations

import contextlib
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.node.share.core.states import AcknowledgeType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.records import Record, encode_batch
from support.cluster_processes import EAGER, ClusterNode, ClusterProcesses
from support.patience import PATIENCE_S
from support.prometheus import targets
from support.raw_client import RawClient
from support.share_client import ShareMember, begin_group

PREFIX = "kafka_server_brokertopicmetrics_"
TOPIC = "shared"


@pytest.fixture(scope="module", params=[1, 3], ids=["one node", "three nodes"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcesses]:
    overrides = EAGER | {"barnabas.metrics.listener": "http://127.0.0.1:0"}
    directory = tmp_path_factory.mktemp("share")
    with ClusterProcesses(directory, nodes=request.param, overrides=overrides) as found:
        found.create_topic(TOPIC, partitions=1)
        yield found


def counted(node: ClusterNode) -> dict[str, tuple[float, float]]:
    """What a node counts of share groups: of the topic, and of all."""
    (address,) = targets([node])
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith(PREFIX) and "share" in sample.name:
                name = sample.name.removeprefix(PREFIX).removesuffix("requests_total")
                found.setdefault(name, {})[sample.labels.get("topic", "")] = sample.value
    return {name: (by.get(TOPIC, 0), by[""]) for name, by in found.items()}


def test_what_fails_is_counted_by_topic(cluster: ClusterProcesses) -> None:
    leader = cluster.nodes[cluster.wait_for_leader(TOPIC)]
    batch = bytes(encode_batch([Record(number, number, None, b"v") for number in range(10)]))
    with RawClient(leader.bootstrap_servers) as raw:
        topic_id = raw.topic_id(TOPIC)
        begin_group(raw, "s", topic_id)
        assert raw.produce(TOPIC, batch).error_code == 0
    before = counted(leader)
    assert set(before) == {
        "totalsharefetch",
        "failedsharefetch",
        "totalshareacknowledgement",
        "failedshareacknowledgement",
    }
    with contextlib.closing(ShareMember(leader.bootstrap_servers, "s", topic_id)) as member:
        assert member.fetch().batches == [(0, 9)]
        accept = AcknowledgeType.ACCEPT.value
        assert member.fetch([(5, 9, accept)], max_wait_ms=0).ack_error == ErrorCode.NONE
        again = member.fetch([(5, 9, accept)], max_wait_ms=0)
        assert again.ack_error == ErrorCode.INVALID_RECORD_STATE
        answer = member.acknowledge([(5, 9, accept)])
        assert answer.responses[0].partitions[0].error_code == ErrorCode.INVALID_RECORD_STATE
    now = counted(leader)
    told = {name: now[name][0] - before[name][0] for name in now}
    assert told == {
        "totalsharefetch": 3,
        "failedsharefetch": 0,
        "totalshareacknowledgement": 3,
        "failedshareacknowledgement": 2,
    }
    assert now["totalsharefetch"][1] - before["totalsharefetch"][1] == 3
    # A group whose state nobody has begun.
    with contextlib.closing(ShareMember(leader.bootstrap_servers, "never", topic_id)) as member:
        assert member.fetch().error != ErrorCode.NONE
    failed = counted(leader)["failedsharefetch"]
    assert failed == (now["failedsharefetch"][0] + 1, now["failedsharefetch"][1] + 1)


def test_a_node_that_does_not_lead_counts_its_refusals(cluster: ClusterProcesses) -> None:
    leader = cluster.wait_for_leader(TOPIC)
    others = [node for number, node in cluster.nodes.items() if number != leader]
    with RawClient(cluster.nodes[leader].bootstrap_servers) as raw:
        topic_id = raw.topic_id(TOPIC)
    for node in others:
        with contextlib.closing(ShareMember(node.bootstrap_servers, "s", topic_id)) as member:
            assert member.fetch(max_wait_ms=0).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
        found = counted(node)
        assert found["totalsharefetch"] == found["failedsharefetch"] == (1, 1)
    assert len(others) == len(cluster.nodes) - 1
