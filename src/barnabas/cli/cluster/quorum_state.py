"""The metadata quorum as DescribeQuorum tells it, and what its voters allow."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from barnabas.base.ids import ZERO_UUID, Uuid, uuid_from_text, uuid_to_text
from barnabas.cli.admin import Admin, read_features, remove_voter
from barnabas.cli.errors import CliError, ExitCode, from_code
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import KRAFT_VERSION
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    ReplicaState,
)
from barnabas.protocol.well_known import CLUSTER_METADATA

ALIVE_MAX_MS = 3_000
"""A replica that last fetched longer ago, seen from the leader, counts as gone."""
FETCH_LATE_MS = 1_000
"""A replica that follows fetches at least every half second."""


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A voter or an observer of the metadata log."""

    id: int
    directory_id: Uuid
    is_voter: bool
    is_leader: bool
    log_end_offset: int
    lag: int
    fetch_age_ms: int | None
    """How long before the leader's own time it last fetched; None where that is not known."""
    caught_up_age_ms: int | None

    @property
    def is_alive(self) -> bool:
        """True if it follows the leader now."""
        return self.has_fetched(ALIVE_MAX_MS)

    def has_fetched(self, within_ms: float) -> bool:
        """Return whether it fetched so lately; a leader need not."""
        return self.is_leader or (self.fetch_age_ms is not None and self.fetch_age_ms < within_ms)

    @property
    def directory_text(self) -> str | None:
        """The id of its metadata directory as Kafka writes it; None where it is not known."""
        return None if self.directory_id == ZERO_UUID else uuid_to_text(self.directory_id)


@dataclass(frozen=True, slots=True)
class Quorum:
    """The quorum at one moment."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[int, tuple[tuple[str, str, int], ...]]
    """(listener, host, port) of the controllers that are known, by id."""

    def voter(self, node_id: int) -> QuorumReplica | None:
        return next((item for item in self.voters if item.id == node_id), None)

    def observer(self, node_id: int, directory_id: Uuid | None = None) -> QuorumReplica | None:
        """The observer with this id: with that directory, or the one that fetched last.

        A node whose disk was replaced appears twice for a while, the second time with the lost
        directory.
        """
        fitting = [item for item in self.observers if item.id == node_id]
        if directory_id is not None:
            named = [item for item in fitting if item.directory_id == directory_id]
            fitting = named or fitting
        return min(fitting, key=lambda item: item.fetch_age_ms or 0, default=None)

    @property
    def majority(self) -> int:
        """The number of voters that is a majority."""
        return len(self.voters) // 2 + 1

    @property
    def alive(self) -> int:
        """The number of voters that follow, the leader included."""
        return sum(voter.is_alive for voter in self.voters)


def read_quorum(admin: Admin, doubted: Collection[int] = ()) -> Quorum:
    """Ask for the quorum. Raises CliError.

    A voter that has just died looks as if it followed. So where a voter is late to fetch, or one of
    `doubted` (nodes that are down as brokers), ask until it has fetched again or counts as gone:
    `ALIVE_MAX_MS` at most.
    """
    quorum = _ask_quorum(admin)
    first_s = time.monotonic()
    in_doubt = {
        voter.id
        for voter in quorum.voters
        if voter.id in doubted or (voter.fetch_age_ms or 0) >= FETCH_LATE_MS
    }

    def is_settled() -> bool:
        nonlocal quorum
        since_first_ms = (time.monotonic() - first_s) * 1000
        quorum = _ask_quorum(admin)
        return not any(
            voter.id in in_doubt and voter.is_alive and not voter.has_fetched(since_first_ms)
            for voter in quorum.voters
        )

    if any(
        voter.id in in_doubt and voter.is_alive and not voter.is_leader for voter in quorum.voters
    ):
        admin.wait_until(is_settled, 2 * ALIVE_MAX_MS / 1000)
    return quorum


def _ask_quorum(admin: Admin) -> Quorum:
    request = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name=CLUSTER_METADATA,
                partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
            )
        ]
    )
    try:
        response = admin.decide(request, "the quorum")
    except CliError as error:
        if error.code is ExitCode.UNREACHABLE and admin.info():
            raise _leaderless(admin) from error  # nodes answer, and find nobody who leads
        raise
    partition = response.topics[0].partitions[0]
    if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        raise _leaderless(admin)
    if partition.error_code != ErrorCode.NONE:
        raise from_code(partition.error_code, partition.error_message, "the quorum")
    leader = next(
        (item for item in partition.current_voters if item.replica_id == partition.leader_id), None
    )

    def replica(state: ReplicaState, is_voter: bool) -> QuorumReplica:
        return QuorumReplica(
            id=state.replica_id,
            directory_id=state.replica_directory_id,
            is_voter=is_voter,
            is_leader=is_voter and state.replica_id == partition.leader_id,
            log_end_offset=state.log_end_offset,
            lag=0 if leader is None else max(0, leader.log_end_offset - state.log_end_offset),
            fetch_age_ms=_age_ms(leader, state.last_fetch_timestamp),
            caught_up_age_ms=_age_ms(leader, state.last_caught_up_timestamp),
        )

    return Quorum(
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        voters=tuple(replica(state, True) for state in partition.current_voters),
        observers=tuple(replica(state, False) for state in partition.observers),
        endpoints={
            node.node_id: tuple((end.name, end.host, end.port) for end in node.listeners)
            for node in response.nodes
        },
    )


def _leaderless(admin: Admin) -> CliError:
    text = "the metadata quorum has no leader: no majority of its voters is up and connected"
    if not admin.controllers:
        hint = (
            "start the controllers that are down; to see which, ask one that is up with "
            "--bootstrap-controller"
        )
        return CliError(text, ExitCode.UNREACHABLE, hint)
    silent = [f"{node.id} at {node.host}:{node.port}" for node in admin.unanswering()]
    hint = f"start controllers {', '.join(silent)}" if silent else "all controllers answer: wait"
    return CliError(text, ExitCode.UNREACHABLE, hint)


def _age_ms(leader: ReplicaState | None, timestamp_ms: int) -> int | None:
    if leader is None or leader.last_fetch_timestamp < 0 or timestamp_ms < 0:
        return None
    return max(0, leader.last_fetch_timestamp - timestamp_ms)


def check_removal(quorum: Quorum, voter_id: int) -> None:
    """Raise CliError where the quorum could not decide any more without this voter."""
    rest = [voter for voter in quorum.voters if voter.id != voter_id]
    if not rest:
        raise CliError(
            f"node {voter_id} is the only voter: without it the cluster could decide nothing",
            hint="add another controller first (barnabas quorum add-voter)",
        )
    alive = sum(voter.is_alive for voter in rest)
    needed = len(rest) // 2 + 1
    if alive < needed:
        gone = ", ".join(str(voter.id) for voter in rest if not voter.is_alive)
        raise CliError(
            f"without node {voter_id} the quorum would lose its majority: {alive} of {len(rest)} "
            f"voters would be alive, and {needed} are needed (down: {gone})",
            hint=f"start node {gone}, or first remove voters that are lost for good",
        )


def is_dynamic(admin: Admin) -> bool:
    """Return whether voters can be added and removed (kraft.version 1). Raises CliError."""
    return read_features(admin).get(KRAFT_VERSION, 0) > 0


def require_dynamic(admin: Admin) -> None:
    """Raise CliError where voters are fixed by configuration."""
    if not is_dynamic(admin):
        raise CliError(
            "the voters of this quorum are fixed by controller.quorum.voters (kraft.version 0)",
            hint="upgrade kraft.version to 1 first: barnabas feature upgrade --feature "
            "kraft.version=1",
        )


def remove(admin: Admin, quorum: Quorum, node_id: int, directory: str | None = None) -> None:
    """Take a voter out; without `directory`, the one that it votes with. Raises CliError."""
    voter = quorum.voter(node_id)
    if directory is not None:
        try:
            directory_id = uuid_from_text(directory)
        except ValueError as error:
            raise CliError(f"--directory: {error}", ExitCode.USAGE) from error
    else:
        directory_id = ZERO_UUID if voter is None else voter.directory_id
    remove_voter(admin, admin.info().cluster_id, node_id, directory_id)
