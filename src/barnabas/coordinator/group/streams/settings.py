"""Settings of streams groups: the group's own within the broker's limits, or the broker's."""

from collections.abc import Mapping

from barnabas.coordinator.group.config import GroupConfig
from barnabas.coordinator.group.step import Step
from barnabas.coordinator.group.streams.assignor import NUM_STANDBY_REPLICAS
from barnabas.coordinator.group.view import GroupMetadata


def session_timeout_ms(step: Step, group_id: str) -> int:
    """How long a member may be silent."""
    value = step.metadata.group_setting(group_id, "streams.session.timeout.ms")
    if value is None:
        return step.config.streams_session_timeout_ms
    return _within(value, step.config.streams_session_timeout_limits_ms)


def heartbeat_interval_ms(config: GroupConfig, metadata: GroupMetadata, group_id: str) -> int:
    """How often a member shall be heard."""
    value = metadata.group_setting(group_id, "streams.heartbeat.interval.ms")
    if value is None:
        return config.streams_heartbeat_interval_ms
    return _within(value, config.streams_heartbeat_interval_limits_ms)


def initial_rebalance_delay_ms(step: Step, group_id: str) -> int:
    """How long a group that was empty waits for more members before it assigns."""
    value = step.metadata.group_setting(group_id, "streams.initial.rebalance.delay.ms")
    return step.config.streams_initial_rebalance_delay_ms if value is None else value


def assignment_interval_ms(step: Step, group_id: str) -> int:
    """The shortest time between two assignments."""
    value = step.metadata.group_setting(group_id, "streams.assignment.interval.ms")
    if value is None:
        return step.config.streams_assignment_interval_ms
    return _within(value, step.config.streams_assignment_interval_limits_ms)


def assignment_configs(step: Step, group_id: str) -> Mapping[str, str]:
    """What the assignor is told; the group is assigned anew when it changes."""
    value = step.metadata.group_setting(group_id, "streams.num.standby.replicas")
    if value is None:
        value = step.config.streams_standby_replicas
    else:
        value = min(value, step.config.streams_standby_replicas_max)
    return {NUM_STANDBY_REPLICAS: str(value)}


def _within(value: int, limits: tuple[int, int]) -> int:
    low, high = limits
    return min(max(value, low), high)
