"""Which callbacks a change of a broker's configuration reaches."""

from collections.abc import Mapping

import pytest

from barnabas.app.listening import connection_limits
from barnabas.app.local_nodes import standalone_properties
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.dynamic_config import DynamicConfig
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.image import ConfigResourceType, MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.protocol.messages.metadata_records import ConfigRecord

FETCHERS = "num.replica.fetchers"
CONNECTIONS = "max.connections"
RATE = "leader.replication.throttled.rate"
UNLIMITED = 2**63 - 1


class World:
    """A broker with id 1, and what is set for it and for all."""

    def __init__(self, overrides: Mapping[str, str] | None = None) -> None:
        properties = standalone_properties("/data", overrides=overrides or {})
        config = NodeConfig.from_properties(properties)
        self.dynamic = DynamicConfig(EffectiveConfig(config))
        self.image = MetadataImage()
        self.told: list[tuple[str, int]] = []

    def set(
        self,
        name: str,
        value: str | None,
        resource: str = "1",
        kind: ConfigResourceType = ConfigResourceType.BROKER,
    ) -> list[tuple[str, int]]:
        """Set a key; return the changes that were reported, as keys and new values."""
        self.told.clear()
        delta = ImageDelta(self.image)
        record = ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
        delta.replay(record)
        self.image = delta.image(self.image.offset + 1, 1)
        self.dynamic.image_changed(delta, self.image)
        return list(self.told)

    def watch(self, *keys: str) -> None:
        def tell(config: NodeConfig) -> None:
            self.told.extend((key, config.get(key)) for key in keys)

        self.dynamic.on_config(keys, tell)


def test_whoever_asks_is_told_at_once_and_of_each_change_of_its_keys_alone() -> None:
    world = World({FETCHERS: "3"})
    world.watch(FETCHERS)
    assert world.told == [(FETCHERS, 3)]
    world.watch(RATE)
    assert world.told[1:] == [(RATE, UNLIMITED)]
    assert world.set(FETCHERS, "4") == [(FETCHERS, 4)]
    assert world.set(FETCHERS, "4") == []
    assert world.set(RATE, "70", "") == [(RATE, 70)]
    assert world.set("log.retention.ms", "5") == []
    assert world.set(FETCHERS, None) == [(FETCHERS, 3)]


def test_own_values_go_before_those_of_all_and_other_brokers_have_none_to_say() -> None:
    world = World()
    world.watch(RATE)
    assert world.set(RATE, "7", "1") == [(RATE, 7)]
    assert world.set(RATE, "5", "") == []
    assert world.set(RATE, "6", "2") == []
    assert world.set(RATE, None, "1") == [(RATE, 5)]
    assert world.set("retention.ms", "1", "t", ConfigResourceType.TOPIC) == []


def test_what_a_listener_has_of_its_own_counts_as_its_key() -> None:
    world = World()
    world.watch(CONNECTIONS)
    unlimited = 2**31 - 1
    own = "listener.name.plaintext.max.connections"
    assert world.set(own, "5") == [(CONNECTIONS, unlimited)]
    assert world.dynamic.current.listener_value("PLAINTEXT", CONNECTIONS) == 5
    assert world.set("listener.name.plaintext.max.connection.creation.rate", "5") == []


def test_a_value_that_cannot_be_used_changes_nothing() -> None:
    world = World()
    world.watch(FETCHERS)
    assert world.set(FETCHERS, "many") == []


def test_a_callback_that_fails_is_named_and_keeps_no_other_from_being_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_config: NodeConfig) -> None:
        if world.dynamic.current is not at_first:
            raise ValueError("of our own making")

    world = World()
    at_first = world.dynamic.current
    world.dynamic.on_config((FETCHERS,), fail)
    world.watch(FETCHERS)
    caplog.clear()
    assert world.set(FETCHERS, "2") == [(FETCHERS, 2)]
    assert world.set(FETCHERS, "5") == [(FETCHERS, 5)]
    assert caplog.text.count("cannot apply a change of num.replica.fetchers") == 2


def test_a_callback_that_fails_at_once_is_a_mistake_of_whoever_asks() -> None:
    asked: list[NodeConfig] = []

    def fail(config: NodeConfig) -> None:
        asked.append(config)
        raise ValueError("of our own making")

    world = World()
    with pytest.raises(ValueError, match="of our own making"):
        world.dynamic.on_config((FETCHERS,), fail)
    world.set(FETCHERS, "2")
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (FETCHERS, "many"),
        ("cordoned.log.dirs", "/elsewhere"),
        ("max.connections.per.ip.overrides", "garbage"),
        ("listener.name.plaintext.max.connections", "many"),
    ],
)
def test_a_stored_value_that_cannot_be_used_does_not_reach_whoever_asks_later(
    key: str, value: str
) -> None:
    world = World()
    world.set(key, value)
    seen: list[NodeConfig] = []
    world.dynamic.on_config((FETCHERS, "cordoned.log.dirs"), seen.append)
    (config,) = seen
    assert config.get_int(FETCHERS) == 1
    assert config.cordoned_log_dirs == []
    assert connection_limits(config).connections_per_ip_overrides == {}


def test_a_key_that_does_not_exist_is_a_mistake_of_whoever_asks() -> None:
    with pytest.raises(KeyError):
        World().watch("num.replica.fetcher")


def test_a_rate_in_the_file_has_no_effect_as_in_kafka() -> None:
    world = World({RATE: "10", FETCHERS: "3"})
    world.watch(RATE)
    assert world.told == [(RATE, UNLIMITED)]
    assert world.set(FETCHERS, "4") == []
    assert world.set(RATE, "10") == [(RATE, 10)]
