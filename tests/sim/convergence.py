"""After all faults are repaired: does the cluster recover by itself, in bounded time?"""

import asyncio
from collections.abc import Iterator

from barnabas.base.ids import TopicPartition
from sim.machine import Machine
from sim.sim_history import History

LOOK_EVERY_S = 0.2


async def wait_converged(
    machines: list[Machine],
    partitions: list[TopicPartition],
    history: History,
    within_s: float,
) -> None:
    """Wait until nothing of `_missing` is left; what is left at the end is an anomaly."""
    loop = machines[0].loop
    deadline_s = loop.time() + within_s
    while True:
        missing = list(_missing(machines, partitions))
        if not missing:
            return
        if loop.time() >= deadline_s:
            history.saw("no-convergence", "; ".join(missing[:5]))
            return
        await asyncio.sleep(LOOK_EVERY_S)


def _missing(machines: list[Machine], partitions: list[TopicPartition]) -> Iterator[str]:
    """Yield the reasons why the cluster is not whole."""
    for machine in machines:
        if not machine.is_serving:
            yield f"{machine} does not serve"
    if not any(machine.leads_quorum for machine in machines):
        yield "nobody leads the quorum"
    brokers = {
        machine.node_id: machine.node
        for machine in machines
        if machine.is_serving and machine.node is not None and "broker" in machine.roles
    }
    for topic_partition in partitions:
        placed = {}
        for node_id, node in brokers.items():
            state = node.metadata.image.topics.partition(*topic_partition)
            if state is None:
                yield f"node {node_id} does not know {topic_partition}"
                return
            placed[node_id] = state
        if not placed:
            return
        if len({state.partition_epoch for state in placed.values()}) > 1:
            yield f"{topic_partition} is in several states: {placed}"
            continue
        state = next(iter(placed.values()))
        alive = [replica for replica in state.replicas if replica in brokers]
        if sorted(state.isr) != sorted(alive) or state.leader not in alive:
            yield f"{topic_partition} has leader {state.leader} and in-sync replicas {state.isr}"
            continue
        if (state.adding or state.removing) and len(alive) == len(state.replicas):
            yield f"{topic_partition} is still being moved: {state}"
            continue
        ends = {}
        for node_id in alive:
            found = brokers[node_id].broker.replicas.find(*topic_partition)
            if isinstance(found, int):
                yield f"{topic_partition} on node {node_id}: {found!r}"
            else:
                ends[node_id] = (found.high_watermark, found.log.log_end_offset)
        if len({end for both in ends.values() for end in both}) > 1:
            yield f"{topic_partition} has (high watermark, end) {ends}"
