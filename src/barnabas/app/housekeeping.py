"""Periodic tasks of a broker: retention, flushes, checkpoints, expiry of groups and
transactions.
"""

from barnabas.app.background import Background
from barnabas.base.clock import Clock
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.share.service import ShareCoordinator
from barnabas.node.coordinator.transaction.service import TransactionCoordinator
from barnabas.node.log.manager import LogManager


def keep_logs(background: Background, config: NodeConfig, clock: Clock, logs: LogManager) -> None:
    """Retention, checkpoints, deletion and flushes."""
    every = background.every
    every(
        config.get_int("log.retention.check.interval.ms"),
        "retention",
        lambda: logs.retention_step(clock.now_ms()),
    )
    every(
        config.get_int("log.flush.offset.checkpoint.interval.ms"),
        "checkpoint",
        logs.checkpoint_step,
    )
    every(1000, "delete", lambda: logs.delete_step(clock.now_ms()))
    every(1000, "flush", lambda: logs.flush_step(clock.now_ms()))


def keep_coordinators(
    background: Background,
    config: NodeConfig,
    groups: GroupCoordinator,
    transactions: TransactionCoordinator,
    shares: ShareCoordinator,
) -> None:
    """What has outlived its time in internal topics."""
    every = background.every
    every(
        config.get_int("offsets.retention.check.interval.ms"),
        "offset expiry",
        groups.expire_offsets,
    )
    every(
        config.get_int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        "aborting overdue transactions",
        lambda: background.start(transactions.abort_overdue()),
    )
    every(
        config.get_int("transaction.remove.expired.transaction.cleanup.interval.ms"),
        "transactional id expiry",
        transactions.expire_ids,
    )
    every(shares.config.prune_interval_ms, "pruning of share state", shares.prune)
    every(
        shares.config.cold_snapshot_interval_ms,
        "snapshots of quiet share state",
        shares.snapshot_cold,
    )
