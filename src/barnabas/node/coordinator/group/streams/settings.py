"""Settings that only streams groups have: the group's own, or the broker's."""

from collections.abc import Mapping

from barnabas.node.coordinator.group.step import Step
from barnabas.node.coordinator.group.streams.assignor import NUM_STANDBY_REPLICAS


def initial_rebalance_delay_ms(step: Step, group_id: str) -> int:
    """How long a group that was empty waits for more members before it assigns."""
    value = step.metadata.group_setting(group_id, "streams.initial.rebalance.delay.ms")
    return step.config.streams_initial_rebalance_delay_ms if value is None else value


def assignment_configs(step: Step, group_id: str) -> Mapping[str, str]:
    """What the assignor is told; the group is assigned anew when it changes."""
    value = step.metadata.group_setting(group_id, "streams.num.standby.replicas")
    if value is None:
        value = step.config.streams_standby_replicas
    else:
        value = min(value, step.config.streams_standby_replicas_max)
    return {NUM_STANDBY_REPLICAS: str(value)}
