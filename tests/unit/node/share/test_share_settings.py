"""Settings of a share group: its own configuration, within the node's limits."""

import pytest

from barnabas.node.config.node_config import NodeConfig
from barnabas.node.share.core.states import ShareLimits
from barnabas.node.share.settings import ShareSettings
from support.consumer_world import image_of
from support.group_world import BASE_CONFIG


@pytest.mark.parametrize(
    ("node", "group", "limits"),
    [
        ({}, {}, (30_000, 5, 2_000)),
        (
            {
                "group.share.record.lock.duration.ms": "20000",
                "group.share.delivery.count.limit": "4",
                "group.share.partition.max.record.locks": "500",
            },
            {},
            (20_000, 4, 500),
        ),
        (
            {},
            {
                "share.record.lock.duration.ms": "60000",
                "share.delivery.count.limit": "2",
                "share.partition.max.record.locks": "4000",
            },
            (60_000, 2, 4_000),
        ),
        (  # set when the limits were wider
            {},
            {
                "share.record.lock.duration.ms": "1000",
                "share.delivery.count.limit": "25",
                "share.partition.max.record.locks": "10000",
            },
            (15_000, 10, 4_000),
        ),
        (
            {
                "group.share.min.record.lock.duration.ms": "1000",
                "group.share.max.delivery.count.limit": "25",
                "group.share.max.partition.max.record.locks": "10000",
            },
            {
                "share.record.lock.duration.ms": "1000",
                "share.delivery.count.limit": "25",
                "share.partition.max.record.locks": "10000",
            },
            (1_000, 25, 10_000),
        ),
    ],
)
def test_a_group_has_its_own_settings_within_the_limits_of_the_node(
    node: dict[str, str], group: dict[str, str], limits: tuple[int, int, int]
) -> None:
    image = image_of({"t": 1}, group_configs={"g": group})
    settings = ShareSettings(NodeConfig.from_properties(BASE_CONFIG | node), lambda: image)
    assert settings.of("g").limits == ShareLimits(*limits)
