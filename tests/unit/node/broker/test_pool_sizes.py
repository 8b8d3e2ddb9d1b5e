"""How far thread pools may grow or shrink in one step, and when that is none of our business."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.node.broker.apis.alter_configs import refused_pool_sizes
from barnabas.node.broker.apis.config_resources import AnyResource
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.image import ConfigResourceType, ConfigsImage
from barnabas.protocol.messages import configs

KEY = "num.replica.fetchers"
SET, DELETE = 0, 1
STATIC = {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "9@localhost:9093",
}
BROKER = int(ConfigResourceType.BROKER)


def services(
    default: dict[str, str] | None = None, own: dict[str, str] | None = None, **static: str
) -> Any:
    """A broker whose file says `static` (`_` for dots), with dynamic values for all and for it."""
    values = {name.replace("_", "."): value for name, value in static.items()}
    return SimpleNamespace(
        metadata=SimpleNamespace(
            effective=EffectiveConfig(NodeConfig.from_properties(STATIC | values))
        ),
        image=SimpleNamespace(
            configs=ConfigsImage({(BROKER, ""): default or {}, (BROKER, "1"): own or {}})
        ),
    )


def change(value: str | None, name: str = "", key: str = KEY) -> configs.AlterConfigsResource:
    return configs.AlterConfigsResource(
        resource_type=BROKER,
        resource_name=name,
        configs=[
            configs.AlterableConfig(
                name=key, config_operation=DELETE if value is None else SET, value=value
            )
        ],
    )


def replace(name: str = "", **values: str) -> configs.AlterConfigsAlterConfigsResource:
    return configs.AlterConfigsAlterConfigsResource(
        resource_type=BROKER,
        resource_name=name,
        configs=[
            configs.AlterConfigsAlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in values.items()
        ],
    )


def refusal(broker: Any, resource: AnyResource) -> str | None:
    refused = refused_pool_sizes(broker, [resource])
    return refused.get((resource.resource_type, resource.resource_name))


TOO_FAR = "Dynamic thread count update validation failed for num.replica.fetchers"


@pytest.mark.parametrize(
    ("current", "size", "words"),
    [
        (1, 1, None),
        (1, 2, None),
        (1, 3, "=3, value should not be greater than double the current value 1"),
        (4, 8, None),
        (4, 9, "=9, value should not be greater than double the current value 4"),
        (4, 2, None),
        (4, 1, "=1, value should be at least half the current value 4"),
        (5, 2, None),
        (5, 1, "=1, value should be at least half the current value 5"),
        (3, 1, None),
    ],
)
@pytest.mark.parametrize("name", ["", "1"])
def test_at_most_double_and_at_least_half(
    current: int, size: int, words: str | None, name: str
) -> None:
    broker = services(num_replica_fetchers=str(current))
    expected = None if words is None else TOO_FAR + words
    assert refusal(broker, change(str(size), name)) == expected
    assert refusal(broker, replace(name, num_replica_fetchers=str(size))) == expected


def test_it_is_what_holds_in_the_end_that_counts() -> None:
    broker = services({KEY: "4"}, {KEY: "8"}, num_replica_fetchers="2")
    assert refusal(broker, change("1")) is None  # its own value goes before
    assert refusal(broker, change("3", "1")) is not None
    assert refusal(broker, change(None, "1")) is None  # 8 to 4
    assert refusal(services({KEY: "5"}, num_replica_fetchers="1"), change(None)) is not None
    assert refusal(services({KEY: "5"}, num_replica_fetchers="2"), change(None)) is None
    # A whole new configuration drops what it does not name.
    assert refusal(services({KEY: "5"}), replace(log_retention_ms="1")) is not None
    assert refusal(services({KEY: "5"}), change("1", key="log.retention.ms")) is None


@pytest.mark.parametrize(
    "key", ["background.threads", "num.io.threads", "num.recovery.threads.per.data.dir"]
)
def test_kafkas_other_pools_are_held_to_it_too(key: str) -> None:
    assert "greater than double" in (refusal(services(), change("100", key=key)) or "")


def test_what_others_refuse_is_left_to_them() -> None:
    broker = services()
    assert refusal(broker, change("x")) is None
    assert refusal(broker, change("0")) is None
    topic = change("9", "t")
    topic.resource_type = ConfigResourceType.TOPIC
    assert refused_pool_sizes(broker, [topic]) == {}
    assert refused_pool_sizes(broker, [change("9"), change("2")]) == {}
