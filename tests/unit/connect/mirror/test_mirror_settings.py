"""Settings of MirrorMaker's connectors: filters, clients, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.connect.connectors.mirror import settings
from barnabas.connect.connectors.mirror.checkpoint import MirrorCheckpoint
from barnabas.connect.connectors.mirror.filters import (
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultTopicFilter,
)
from barnabas.connect.connectors.mirror.flow import Flow
from barnabas.connect.connectors.mirror.heartbeat import MirrorHeartbeat
from barnabas.connect.connectors.mirror.source import MirrorSource
from barnabas.schemas.data.errors import ConfigError, ConnectError

GIVEN = {
    "name": "mirror",
    "source.cluster.alias": "west",
    "target.cluster.alias": "east",
    "source.cluster.bootstrap.servers": "west:9092",
    "target.cluster.bootstrap.servers": "east:9092",
}


@pytest.mark.parametrize(
    ("given", "topic", "is_mirrored"),
    [
        ({}, "orders", True),
        ({}, "x.internal", False),
        ({}, "x-internal", False),
        ({}, "x.replica", False),
        ({}, "__consumer_offsets", False),
        ({"topics": "orders, pay.*"}, "payments", True),
        ({"topics": "orders, pay.*"}, "orders2", False),
        ({"topics": ""}, "orders", False),
        ({"topics.exclude": "orders"}, "orders", False),
        # As Java reads them.
        ({"topics": r"\p{Alpha}+"}, "orders", True),
        ({"topics": "[a-z&&[^o]]+"}, "orders", False),
        ({"topics.exclude": ""}, "x.internal", True),
    ],
)
def test_topic_filter(given: dict[str, str], topic: str, is_mirrored: bool) -> None:
    topics = DefaultTopicFilter()
    topics.configure(given)
    assert topics.should_replicate_topic(topic) is is_mirrored


def test_other_filters() -> None:
    groups, configs = DefaultGroupFilter(), DefaultConfigPropertyFilter()
    assert groups.should_replicate_group("shop")
    assert not groups.should_replicate_group("connect-sink")
    assert configs.should_replicate_config_property("retention.ms")
    assert not configs.should_replicate_config_property("min.insync.replicas")
    assert not configs.should_replicate_source_default("retention.ms")
    configs.configure({"use.defaults.from": "source", "config.properties.exclude": "a.*"})
    assert configs.should_replicate_source_default("retention.ms")
    assert not configs.should_replicate_config_property("abc")
    with pytest.raises(ConfigError, match="configuration topics"):
        DefaultTopicFilter().configure({"topics": "(("})


def test_clients() -> None:
    more = {
        "source.cluster.client.id": "c",
        "consumer.fetch.min.bytes": "7",
        "source.consumer.fetch.min.bytes": "9",
        "source.consumer.isolation.level": "read_committed",
        "target.producer.linger.ms": "5",
    }
    flow = Flow.read({**GIVEN, **more}, settings.SOURCE)
    found = flow.consumer("source", "role")
    assert found["bootstrap.servers"] == "west:9092"
    assert found["fetch.min.bytes"] == "9"
    assert found["client.id"] == "c|west->east|mirror|role"
    assert flow.reads_committed
    assert flow.client("target", "producer", "role")["linger.ms"] == "5"
    assert flow.syncs_topic == "mm2-offset-syncs.east.internal"
    there = Flow.read({**GIVEN, "offset-syncs.topic.location": "target"}, settings.SOURCE)
    assert (there.syncs_side, there.syncs_topic) == ("target", "mm2-offset-syncs.west.internal")
    assert not there.reads_committed
    with pytest.raises(ConfigError, match=r"source\.cluster\.bootstrap\.servers"):
        Flow.read({"source.cluster.alias": "x"}, settings.SOURCE).client("source", "admin", "r")


def test_what_validation_refuses() -> None:
    source, checkpoint = MirrorSource(), MirrorCheckpoint()
    assert not source.validate(GIVEN)
    assert "exactly.once.support" in source.validate({**GIVEN, "exactly.once.support": "required"})
    committed = {**GIVEN, "source.consumer.isolation.level": "read_committed"}
    assert not source.validate({**committed, "exactly.once.support": "required"})
    assert source.exactly_once_support(committed) is True
    assert source.exactly_once_support(GIVEN) is False
    silent = {**GIVEN, "emit.offset-syncs.enabled": "false"}
    assert not source.validate(silent)
    assert source.validate({**silent, "offset-syncs.topic.location": "target"})
    assert checkpoint.validate(silent)
    assert checkpoint.validate({**GIVEN, "emit.checkpoints.enabled": "false"})
    assert not checkpoint.validate({**silent, "enabled": "false"})


SOURCE_PARTITION = {"cluster": "west", "topic": "orders", "partition": 0}


@pytest.mark.parametrize(
    ("partition", "offset", "text"),
    [
        ({"topic": "t", "partition": 0}, {"offset": 1}, "is missing the 'cluster' key"),
        ({**SOURCE_PARTITION, "topic": 1}, {"offset": 1}, "which must be a string"),
        ({**SOURCE_PARTITION, "partition": "0"}, {"offset": 1}, "which must be an integer"),
        ({**SOURCE_PARTITION, "partition": -1}, {"offset": 1}, "which cannot be negative"),
        (SOURCE_PARTITION, {"offset": "1"}, "which must be an integer"),
        (SOURCE_PARTITION, {"offset": -1}, "which cannot be negative"),
        (SOURCE_PARTITION, {}, "is missing the 'offset' key, which is required"),
    ],
)
def test_offsets_that_users_give(partition: Any, offset: Any, text: str) -> None:
    connector = MirrorSource()
    assert connector.alter_offsets({}, [(SOURCE_PARTITION, {"offset": 3}), (partition, None)])
    with pytest.raises(ConnectError, match=text):
        connector.alter_offsets({}, [(partition, offset)])


def test_offsets_of_the_others_are_zero() -> None:
    beat = {"sourceClusterAlias": "a", "targetClusterAlias": "b"}
    assert MirrorHeartbeat().alter_offsets({}, [(beat, {"offset": 0})])
    point = {"group": "g", "topic": "t", "partition": 0}
    assert MirrorCheckpoint().alter_offsets({}, [(point, {"offset": 0})])
    for connector, partition in ((MirrorHeartbeat(), beat), (MirrorCheckpoint(), point)):
        with pytest.raises(ConnectError, match="the only accepted value is 0"):
            connector.alter_offsets({}, [(partition, {"offset": 1})])
