"""Puts a distributed worker together from its settings."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from barnabas.connect.config.validation import WorkerRules
from barnabas.connect.config.values import invalid, missing, number_of
from barnabas.connect.tasks.base import TaskEngine
from barnabas.connect.worker.distributed.clients import read_clients
from barnabas.connect.worker.distributed.forwarding import Forwarding
from barnabas.connect.worker.distributed.group_messages import NAMES, PROTOCOL_TYPE
from barnabas.connect.worker.distributed.group_work import GroupWork
from barnabas.connect.worker.distributed.herder import DistributedHerder, HerderSettings
from barnabas.connect.worker.distributed.membership import Membership
from barnabas.connect.worker.distributed.position import Position
from barnabas.connect.worker.distributed.signatures import read_rules
from barnabas.connect.worker.distributed.store import EXACTLY_ONCE, TopicStore
from barnabas.connect.worker.distributed.zombies import Fencer
from barnabas.connect.worker.restarts import read_policy
from barnabas.connect.worker.running import Resolve, Worker
from barnabas.kafka.membership import GroupSettings


def distributed_herder(
    settings: Mapping[str, str],
    engine: TaskEngine,
    url: str,
    *,
    worker_id: str,
    resolve: Resolve = dict,
    policy: str = "All",
    verify: ssl.SSLContext | bool = True,
) -> DistributedHerder:
    """Return a worker of a group, not yet started. Raises ConfigError.

    `url` is where other workers reach this one's REST interface; `verify` is what it checks their
    certificates with.
    """
    group_id = settings.get("group.id", "")
    if not group_id:
        raise missing("group.id")
    protocol = settings.get("connect.protocol", "sessioned").lower()
    if protocol not in NAMES:
        text = "String must be one of: EAGER, COMPATIBLE, SESSIONED"
        raise invalid("connect.protocol", protocol, text)
    group = GroupSettings(
        group_id,
        PROTOCOL_TYPE,
        number_of(settings, "session.timeout.ms", 10_000, 0),
        number_of(settings, "heartbeat.interval.ms", 3_000, 0),
        number_of(settings, "rebalance.timeout.ms", 60_000, 0),
    )
    delay_ms = number_of(settings, "scheduled.rebalance.max.delay.ms", 300_000, 0)
    herder_settings = HerderSettings(
        read_rules(settings),
        number_of(settings, "worker.sync.timeout.ms", 3_000, 0) / 1000,
        number_of(settings, "worker.unsync.backoff.ms", 300_000, 0) / 1000,
        delay_ms / 1000,
    )
    read_policy(settings, {})
    clients = read_clients(settings, settings.get("client.id") or f"connect-{worker_id}")
    store = TopicStore(clients, settings)
    position = Position()
    is_exactly_once = settings.get(EXACTLY_ONCE, "disabled").lower() == "enabled"
    worker = Worker(
        worker_id,
        settings,
        engine,
        store,
        resolve=resolve,
        generation=lambda: max(position.generation, 0),
        is_exactly_once=is_exactly_once,
        offsets_topic=store.offset_topic.name,
    )

    def join(listener: GroupWork) -> Membership:
        return Membership(
            clients.access,
            group,
            listener,
            store.snapshot,
            url,
            compatibility=protocol,
            delay_ms_max=delay_ms,
            busy_ms_max=group.rebalance_timeout_ms,
        )

    return DistributedHerder(
        worker,
        WorkerRules(group_id, is_exactly_once, policy),
        None,
        store,
        position,
        herder_settings,
        join,
        Fencer(clients, group_id),
        Forwarding(verify),
    )
