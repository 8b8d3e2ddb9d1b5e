"""Faults that an administrator makes: replicas and voters that move, leaders that change, and a
disk that is replaced by an empty one.

Each is asked for over the network, of any broker, as real tools do. What must be undone (a voter
that is to come back) is asked for until it is done; all else is tried for a while.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from barnabas.base.ids import Uuid
from barnabas.node.metadata.meta_properties import read_meta_properties
from barnabas.node.metadata.storage_format import FormatOptions, format_directories
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.voters import (
    AddRaftVoterRequest,
    Listener,
    RemoveRaftVoterRequest,
)
from sim.clients import REQUEST_TIMEOUT_MS
from sim.machine import CONTROLLER_PORT, Machine
from sim.plan import DAMAGE, UNCLEAN_ENDS_OF_MANY, Fault, Plan

if TYPE_CHECKING:
    from sim.faults import Nemesis, Repair

ASK_FOR_S = 10.0
UNDO_WITHIN_S = 100.0
LOST_DISK = "lost-disk"
PREFERRED = 0


def with_changes(plan: Plan) -> Plan:
    """The plan, with changes among its faults."""
    random = Random(f"{plan.seed}/changes")
    kinds = random.sample(list(CHANGES), random.randint(1, 3))
    if LOST_DISK in kinds and (
        plan.kinds & UNCLEAN_ENDS_OF_MANY or (plan.is_damaging and plan.kinds & DAMAGE)
    ):
        kinds.remove(LOST_DISK)  # of what nobody else has, nothing can be left
    faults = [
        Fault(
            at_s=random.uniform(0.5, plan.duration_s * 0.9),
            kind=random.choice(kinds),
            lasts_s=random.choice((0.5, 3.0, 8.0)) * random.uniform(0.5, 1.5),
        )
        for _ in range(random.randint(2, 2 + int(plan.duration_s / 3)) if kinds else 0)
    ]
    return replace(plan, faults=sorted([*plan.faults, *faults], key=lambda each: each.at_s))


def _reassign(nemesis: "Nemesis", machine: Machine) -> "Repair | None":
    """Give a partition other replicas, or the same in another order; perhaps think better of it."""
    random, plan = nemesis.random, nemesis.plan
    topic = random.choice(plan.topics)
    index = random.randrange(topic.partitions)
    sizes = (topic.replication_factor, topic.replication_factor, 2)
    size = min(random.choice(sizes), len(plan.brokers))
    replicas = random.sample(plan.brokers, size)
    reassign(nemesis, topic.name, index, replicas)
    nemesis.note(f"reassign {topic.name}-{index} to {replicas}")
    is_cancelled = random.random() < 0.3

    def repair() -> None:
        if is_cancelled:
            reassign(nemesis, topic.name, index, None)

    return repair


def reassign(
    nemesis: "Nemesis", topic: str, index: int, replicas: list[int] | None
) -> "asyncio.Task[bool]":
    """Ask for a while that a partition has these replicas; None ends a move that is under way."""
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=REQUEST_TIMEOUT_MS,
        topics=[ReassignableTopic(name=topic, partitions=[partition])],
    )
    return _ask(nemesis, request, ASK_FOR_S, _is_reassigned)


def _is_reassigned(response: Any) -> bool:
    return not response.error_code and all(
        partition.error_code in (ErrorCode.NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        for topic in response.responses
        for partition in topic.partitions
    )


def _elect(nemesis: "Nemesis", machine: Machine) -> "Repair | None":
    """Have the preferred leaders lead."""
    request = ElectLeadersRequest(
        election_type=PREFERRED, topic_partitions=None, timeout_ms=REQUEST_TIMEOUT_MS
    )
    _ask(nemesis, request, ASK_FOR_S, lambda response: not response.error_code)
    return _nothing


def _voter_leaves(nemesis: "Nemesis", machine: Machine) -> "Repair | None":
    """Take a voter out of the quorum, and back in."""
    plan = nemesis.plan
    voters = [each for each in nemesis.machines if each.node_id in plan.voters]
    if not plan.is_dynamic or len(voters) < 3 or nemesis.is_changing_voters:
        return None
    victim = nemesis.random.choice(voters)
    if not victim.has_disk:
        return None
    nemesis.is_changing_voters = True
    nemesis.note(f"{victim} is taken out of the quorum")
    removal = _ask(nemesis, _removal(nemesis, victim, _directory_id(victim)), ASK_FOR_S, _is_gone)
    return lambda: _bring_back(nemesis, victim, removal)


def _bring_back(nemesis: "Nemesis", victim: Machine, after: "asyncio.Task[bool]") -> None:
    """Make a node a voter again, whether or not it had ceased to be one."""
    voter_id, directory_id = victim.node_id, _directory_id(victim)
    request = AddRaftVoterRequest(
        cluster_id=nemesis.cluster_id,
        timeout_ms=REQUEST_TIMEOUT_MS,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[Listener(name="CONTROLLER", host=victim.name, port=CONTROLLER_PORT)],
    )

    def is_back(response: Any) -> bool:
        return response.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER)

    def done() -> None:
        nemesis.is_changing_voters = False

    _ask(nemesis, request, UNDO_WITHIN_S, is_back, after=after, on_done=done, must=True)


def _removal(nemesis: "Nemesis", victim: Machine, directory_id: Uuid) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=nemesis.cluster_id, voter_id=victim.node_id, voter_directory_id=directory_id
    )


def _is_gone(response: Any) -> bool:
    return response.error_code in (ErrorCode.NONE, ErrorCode.VOTER_NOT_FOUND)


def _directory_id(machine: Machine) -> Uuid:
    fault, machine.disk.fault = machine.disk.fault, None  # it is read by us, from a backup
    properties = read_meta_properties(machine.disk, machine.config.metadata_log_dir)
    machine.disk.fault = fault
    assert properties is not None
    assert properties.directory_id is not None
    return properties.directory_id


def _lose_disk(nemesis: "Nemesis", machine: Machine) -> "Repair | None":
    """A machine's disk is replaced by an empty one, which somebody formats.

    A voter of a static quorum keeps its metadata, since nothing could tell it from one that has
    forgotten how it voted. In a dynamic quorum it comes back as another voter.
    """
    plan = nemesis.plan
    if not machine.is_running or not machine.host.is_powered or machine.excuses:
        return None
    is_voter = machine.node_id in plan.voters
    keeps_metadata = is_voter and not (plan.is_dynamic and len(plan.voters) >= 3)
    is_replaced = is_voter and not keeps_metadata
    if is_replaced and nemesis.is_changing_voters:
        return None
    old_id = _directory_id(machine)
    machine.kill()
    machine.is_wanted = False
    machine.lose_disk(keep=machine.config.metadata_log_dir if keeps_metadata else None)
    if is_replaced:
        nemesis.is_changing_voters = True

    def repair() -> None:
        format_directories(
            machine.disk,
            machine.config,
            FormatOptions(
                cluster_id=nemesis.cluster_id,
                ignore_formatted=True,
                no_initial_controllers=is_replaced,
            ),
            random=nemesis.random,
            now_ms=machine.clock.now_ms(),
        )
        machine.get_disk()
        machine.is_wanted = True
        machine.start()
        if is_replaced:
            removal = _ask(
                nemesis, _removal(nemesis, machine, old_id), UNDO_WITHIN_S, _is_gone, must=True
            )
            _bring_back(nemesis, machine, removal)

    return repair


# Asking


def _ask(
    nemesis: "Nemesis",
    request: Any,
    within_s: float,
    is_done: Callable[[Any], bool],
    *,
    after: "asyncio.Task[bool] | None" = None,
    on_done: Callable[[], None] | None = None,
    must: bool = False,
) -> "asyncio.Task[bool]":
    """Ask any broker until `is_done` with an answer, or for so long."""
    admin = nemesis.admin
    assert admin is not None

    async def work() -> bool:
        if after is not None:
            await after
        deadline_s = nemesis.loop.time() + within_s
        problem = "no answer"
        while nemesis.loop.time() < deadline_s:
            try:
                response = await admin.ask_any(request)
            except OSError as error:
                problem = str(error)
            else:
                if is_done(response):
                    break
                problem = str(response)
            await admin.refresh([nemesis.plan.topics[0].name])
            await admin.back_off()
        else:
            if must:
                admin.history.saw("unfinished-change", f"{request}: {problem}")
            return False
        if on_done is not None:
            on_done()
        return True

    task = nemesis.loop.create_task(work(), context=admin.process.context)
    nemesis.changes.append(task)
    return task


def _nothing() -> None:
    """It cannot be repaired."""


CHANGES: "dict[str, Callable[[Nemesis, Machine], Repair | None]]" = {
    "reassign": _reassign,
    "elect-leaders": _elect,
    "voter-leaves": _voter_leaves,
    LOST_DISK: _lose_disk,
}
