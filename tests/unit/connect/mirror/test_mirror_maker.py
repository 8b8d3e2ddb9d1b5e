"""Files of connect-mirror-maker.sh, as workers and connectors."""

from __future__ import annotations

import pytest

from barnabas.connect.connectors.mirror.maker import read_flows
from barnabas.connect.errors.kinds import ConfigError

GIVEN = {
    "clusters": "west, east",
    "west.bootstrap.servers": "w:1",
    "east.bootstrap.servers": "e:1",
    "east.security.protocol": "SSL",
    "west.consumer.fetch.min.bytes": "7",
    "ssl.endpoint.identification.algorithm": "",
    "west->east.enabled": "true",
    "west->east.topics": "orders",
    "east->west.emit.heartbeats.enabled": "false",
    "replication.factor": "1",
    "tasks.max": "3",
    "offset.storage.replication.factor": "1",
    "east.offset.flush.interval.ms": "1000",
}


def test_flows() -> None:
    (flow,) = read_flows(GIVEN)
    assert (flow.source, flow.target) == ("west", "east")
    worker = flow.worker
    assert worker["bootstrap.servers"] == "e:1"
    assert worker["group.id"] == "west-mm2"
    assert worker["config.storage.topic"] == "mm2-configs.west.internal"
    assert worker["offset.storage.replication.factor"] == "1"
    assert worker["offset.flush.interval.ms"] == "1000"
    assert worker["security.protocol"] == "SSL"
    source = flow.connectors["MirrorSourceConnector"]
    assert source["enabled"] == "true"
    assert source["topics"] == "orders"
    assert source["tasks.max"] == "3"
    assert source["replication.factor"] == "1"
    assert source["source.cluster.bootstrap.servers"] == "w:1"
    assert source["source.consumer.fetch.min.bytes"] == "7"
    assert source["target.cluster.security.protocol"] == "SSL"
    assert source["target.cluster.alias"] == "east"
    assert set(flow.connectors) == {
        "MirrorSourceConnector",
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
    }


def test_heartbeats_alone_make_a_flow() -> None:
    found = read_flows({**GIVEN, "east->west.emit.heartbeats.enabled": "true"})
    assert [(one.source, one.target) for one in found] == [("west", "east"), ("east", "west")]
    assert found[1].connectors["MirrorSourceConnector"]["enabled"] == "false"


@pytest.mark.parametrize(
    ("left_out", "text"),
    [("clusters", '"clusters"'), ("west.bootstrap.servers", "west.bootstrap.servers")],
)
def test_what_must_be_there(left_out: str, text: str) -> None:
    given = {name: value for name, value in GIVEN.items() if name != left_out}
    with pytest.raises(ConfigError, match=text):
        read_flows(given)
