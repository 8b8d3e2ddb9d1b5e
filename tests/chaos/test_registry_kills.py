"""Three instances of the registry on three brokers, while instances and brokers are killed.

No id and no version may be lost, given twice or used again, and at the end all instances answer
the same: exactly what was acknowledged.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import time
from collections.abc import Iterator

import pytest
from suffering import TELEMETRY, let_it_last, node_program

from support.cluster_processes import EAGER, ClusterProcesses
from support.registry_member import SESSION_TIMEOUT_MS
from support.registry_process import RegistryProcess, registry_process
from support.registry_writers import RegistryWriters

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
"""One partition each, so that a topic's name says who coordinates."""
BETWEEN_WRITES = 60
LONG_S = 1.3 * SESSION_TIMEOUT_MS / 1000
"""Longer than a session: the group has gone on without an instance that is paused for so long."""


@contextlib.contextmanager
def suffering_registries(
    directory: pathlib.Path,
) -> Iterator[tuple[ClusterProcesses, list[RegistryProcess], RegistryWriters]]:
    """Brokers, instances and their writers. When the block ends well, all is checked."""
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(
            ClusterProcesses(directory, 3, EAGER | SETTINGS, program=node_program())
        )
        settings = {"kafkastore_timeout_ms": "20000"}
        servers = cluster.bootstrap_servers
        first = stack.enter_context(registry_process(servers, **settings))
        others = (registry_process(servers, first.topic, **settings) for _ in range(2))
        instances = [first, *map(stack.enter_context, others)]
        with RegistryWriters(instances, 6, is_patient=True) as writers:
            writers.progress(BETWEEN_WRITES)
            yield cluster, instances, writers
            writers.progress(BETWEEN_WRITES)
        fresh = stack.enter_context(registry_process(servers, first.topic, **settings))
        writers.check([*instances, fresh])
        TELEMETRY.info(
            "%d writes, %d tried again, %d versions, %d ids",
            *(writers.model.writes, writers.tried_again),
            *(len(writers.model.ids), len(writers.model.texts)),
        )


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_an_instance_that_wakes_up_late_writes_nothing(tmp_path: pathlib.Path) -> None:
    with suffering_registries(tmp_path) as (_, instances, writers):
        for instance in instances:
            instance.pause()
            let_it_last(LONG_S)
            instance.resume()
            writers.progress(BETWEEN_WRITES)


@pytest.mark.soak(weight=2)
@pytest.mark.timeout(0)
def test_whatever_comes_to_registries(tmp_path: pathlib.Path, soak_minutes: float) -> None:
    choose = random.Random(3)
    deadline = time.monotonic() + soak_minutes * 60
    with suffering_registries(tmp_path) as (cluster, instances, writers):
        while time.monotonic() < deadline:
            _suffer(cluster, instances, choose)
            cluster.wait_until_healthy()
            writers.progress(BETWEEN_WRITES)


def _suffer(
    cluster: ClusterProcesses, instances: list[RegistryProcess], choose: random.Random
) -> None:
    instance = choose.choice(instances)
    brokers = {
        "any": choose.choice(list(cluster.nodes)),
        "topic": cluster.leader_of(instance.topic),
        "group": cluster.leader_of("__consumer_offsets"),
        "transactions": cluster.leader_of("__transaction_state"),
    }
    broker = brokers[choose.choice(list(brokers))]
    fate = choose.choice(
        [
            *("kill instance", "freeze instance", "stop instance", "kill instances"),
            *("kill broker", "freeze broker", "restart broker", "kill brokers", "kill both"),
        ]
    )
    for_s = choose.choice([0, choose.uniform(0, 2), choose.uniform(0, LONG_S)])
    TELEMETRY.info("%s for %.1f s: broker %d, %s", fate, for_s, broker, instance.url)
    if fate in ("kill instance", "stop instance"):
        instance.kill() if fate == "kill instance" else instance.stop()
        let_it_last(for_s)
        instance.start()
    elif fate == "freeze instance":
        instance.pause()
        let_it_last(for_s)
        instance.resume()
    elif fate == "kill instances":
        for each in instances:
            each.kill()
        let_it_last(for_s)
        for each in instances:
            each.start()
    elif fate == "restart broker":
        cluster.restart(broker)
    elif fate == "freeze broker":
        cluster.pause(broker)
        let_it_last(for_s)
        cluster.resume(broker)
    elif fate == "kill brokers":
        cluster.kill(*cluster.nodes)
        let_it_last(for_s)
        cluster.start()
    else:
        cluster.kill(broker)
        if fate == "kill both":
            instance.kill()
        let_it_last(for_s)
        cluster.start(broker)
        if fate == "kill both":
            instance.start()
