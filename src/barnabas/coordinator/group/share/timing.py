"""Timers of members of share groups, and the settings behind them."""

from barnabas.coordinator.group.step import Step, TimerKey, TimerKind

SESSION_KEY = "share.session.timeout.ms"
HEARTBEAT_KEY = "share.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL_KEY = "share.assignment.interval.ms"


def heartbeat_interval_ms(step: Step, group_id: str) -> int:
    """How often members of the group shall be heard, within the broker's limits."""
    config = step.config
    return _setting(
        step,
        group_id,
        HEARTBEAT_KEY,
        config.share_heartbeat_interval_ms,
        config.share_heartbeat_interval_limits_ms,
    )


def assignment_interval_ms(step: Step, group_id: str) -> int:
    """The shortest time between two assignments, within the broker's limits."""
    config = step.config
    return _setting(
        step,
        group_id,
        ASSIGNMENT_INTERVAL_KEY,
        config.share_assignment_interval_ms,
        config.share_assignment_interval_limits_ms,
    )


def reset_session(step: Step, group_id: str, member_id: str) -> None:
    """A member was heard."""
    config = step.config
    timeout_ms = _setting(
        step,
        group_id,
        SESSION_KEY,
        config.share_session_timeout_ms,
        config.share_session_timeout_limits_ms,
    )
    step.schedule(TimerKey(TimerKind.MEMBER_SESSION, group_id, member_id), timeout_ms)


def _setting(step: Step, group_id: str, key: str, default: int, limits: tuple[int, int]) -> int:
    value = step.metadata.group_setting(group_id, key)
    if value is None:
        return default
    low, high = limits
    return min(max(value, low), high)
