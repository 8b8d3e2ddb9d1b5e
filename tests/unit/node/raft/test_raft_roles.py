"""One replica in each role, event by event. Times are milliseconds."""

from dataclasses import replace
from typing import Any

import pytest
from machine_disk import Disk, Entry, ModelLog
from machine_world import member

from barnabas.base.ids import ZERO_UUID
from barnabas.node.raft.core.events import (
    AdvanceHighWatermark,
    AnnounceLeader,
    Answer,
    AppendEpochStart,
    AppendRecords,
    Effect,
    Failure,
    FlushLog,
    LogAppended,
    LogFlushed,
    PersistElection,
    ReplyReceived,
    RequestFailed,
    RequestReceived,
    Send,
    Started,
    StopRequested,
    TimePassed,
    TruncateLog,
)
from barnabas.node.raft.core.machine import QuorumError, step
from barnabas.node.raft.core.messages import (
    BeginEpoch,
    EndEpoch,
    Fetch,
    FetchReply,
    LogPosition,
    Standing,
    Vote,
    VoteReply,
)
from barnabas.node.raft.core.state import (
    TRANSITIONS,
    Follower,
    Leader,
    Prospective,
    RaftState,
    Resigned,
    Role,
    TransitionError,
    Trigger,
    Unattached,
    enter,
)
from barnabas.node.raft.core.voter_history import VoterHistory
from barnabas.node.raft.quorum_state import ElectionState
from barnabas.node.raft.settings import RaftSettings
from barnabas.node.raft.voters import ReplicaKey, VoterSet
from barnabas.protocol.errors import ErrorCode

EPOCH = 5
END = LogPosition(4, 10)


class Replica:
    """Node 1 of three, with ten records on its medium, the last of epoch 4."""

    def __init__(self, voters: int = 3, *, leader_id: int = -1, voted: int = 0) -> None:
        disk = Disk()
        disk.entries = [Entry(1, index) for index in range(5)]
        disk.entries += [Entry(4, index) for index in range(5)]
        disk.durable = list(disk.entries)
        self.log = ModelLog(disk)
        self.state = RaftState(
            local=member(1),
            settings=RaftSettings(),
            log=self.log,
            election=ElectionState(EPOCH, leader_id, member(voted).key if voted else None),
            history=VoterHistory(static=VoterSet({i: member(i) for i in range(1, voters + 1)})),
        )
        self.now_ms = 1_000
        self.effects = self.step(Started())

    def step(self, event: Any) -> list[Effect]:
        """Step; what the machine does to the log is done at once, except for the fsync."""
        self.effects = step(self.state, event, self.now_ms)
        for effect in list(self.effects):
            if isinstance(effect, AppendEpochStart):
                self.append(effect.epoch)
        return self.effects

    def append(self, epoch: int) -> None:
        self.log.disk.entries.append(Entry(epoch, "more"))
        self.effects += step(self.state, LogAppended(), self.now_ms)

    def flush(self) -> list[Effect]:
        self.log.flushed(self.log.end_offset, self.log.truncations)
        return self.step(LogFlushed())

    def later(self, duration_ms: int) -> list[Effect]:
        self.now_ms += duration_ms
        return self.step(TimePassed())

    def ask(self, request: Any) -> Any:
        """The answer to a request, or None while it waits."""
        effects = self.step(RequestReceived(7, request))
        replies = [e.reply for e in effects if isinstance(e, Answer) and e.token == 7]
        return replies[0] if replies else None

    def sent(self) -> list[tuple[int, str]]:
        return [(e.peer_id, type(e.request).__name__) for e in self.effects if isinstance(e, Send)]

    def reply(self, peer_id: int, reply: Any) -> list[Effect]:
        number = self.state.peers[peer_id].number
        assert number is not None
        return self.step(ReplyReceived(peer_id, number, reply))

    def fail(self, peer_id: int, failure: Failure) -> list[Effect]:
        number = self.state.peers[peer_id].number
        assert number is not None
        return self.step(RequestFailed(peer_id, number, failure))

    # -- into a role

    def stand(self) -> "Replica":
        self.later(5_000)
        assert self.state.role is Role.PROSPECTIVE
        return self

    def run_for_election(self) -> "Replica":
        self.stand().reply(2, VoteReply(Standing(EPOCH), is_granted=True))
        assert self.state.role is Role.CANDIDATE
        return self

    def lead(self) -> "Replica":
        self.run_for_election().reply(2, VoteReply(Standing(EPOCH + 1), is_granted=True))
        assert self.state.role is Role.LEADER
        return self

    def follow(self) -> "Replica":
        self.ask(begin(EPOCH))
        assert self.state.role is Role.FOLLOWER
        return self


def vote(
    epoch: int = EPOCH, *, candidate: int = 2, last: LogPosition = END, pre: bool = False
) -> Vote:
    return Vote(epoch, member(candidate).key, member(1).key, last, pre)


def begin(epoch: int, leader_id: int = 2) -> BeginEpoch:
    return BeginEpoch(epoch, leader_id, member(2).endpoints, member(1).key)


def fetch(replica: int, offset: int, **fields: Any) -> Fetch:
    fields = {"last_epoch": 4, "max_wait_ms": 500, **fields}
    return Fetch(EPOCH + 1, member(replica).key, offset, **fields)


def fetched(**fields: Any) -> FetchReply:
    return FetchReply(Standing(EPOCH, 2, member(2).endpoints), offset=10, **fields)


# -- votes


@pytest.mark.parametrize(
    ("role", "grants_pre_vote", "grants_vote"),
    [
        ("unattached", True, True),
        ("voted for another", True, False),
        ("voted for the same", True, True),
        ("prospective", True, True),
        ("candidate", True, False),
        ("new leader", True, False),
        ("leader", False, False),
        ("new follower", True, False),
        ("follower", False, False),
        ("follower cut off", True, False),
        ("resigned", True, False),
    ],
)
def test_who_gets_a_vote(role: str, grants_pre_vote: bool, grants_vote: bool) -> None:
    for is_pre_vote, expected in ((True, grants_pre_vote), (False, grants_vote)):
        replica = in_role(role)
        epoch = replica.state.epoch
        last = LogPosition(epoch if is_pre_vote else epoch - 1, 100)
        reply = replica.ask(vote(epoch, last=last, pre=is_pre_vote))
        assert (reply.error, reply.is_granted) == (ErrorCode.NONE, expected), (role, is_pre_vote)
        behind = in_role(role)
        short = LogPosition(4, 9)
        if role != "voted for the same":
            assert not behind.ask(vote(epoch, last=short, pre=is_pre_vote)).is_granted


def in_role(role: str) -> Replica:
    match role:
        case "unattached":
            return Replica()
        case "voted for another":
            return Replica(voted=3)
        case "voted for the same":
            return Replica(voted=2)
        case "prospective":
            return Replica().stand()
        case "candidate":
            return Replica().run_for_election()
        case "new leader":
            return Replica().lead()
        case "leader":
            replica = Replica().lead()
            replica.flush()
            replica.ask(fetch(2, 11, last_epoch=EPOCH + 1))
            return replica
        case "new follower":
            return Replica().follow()
        case "follower" | "follower cut off":
            replica = Replica().follow()
            replica.reply(2, fetched())
            if role == "follower cut off":
                replica.fail(2, Failure.REFUSED)
            return replica
        case "resigned":
            return Replica(leader_id=1)
    raise AssertionError(role)


def test_a_vote_is_written_down_before_it_is_given() -> None:
    replica = Replica()
    replica.ask(vote(EPOCH + 1))
    persisted = [e.election for e in replica.effects if isinstance(e, PersistElection)]
    assert persisted == [
        ElectionState(EPOCH + 1),
        ElectionState(EPOCH + 1, -1, member(2).key),
    ]
    kinds = [type(effect) for effect in replica.effects]
    assert kinds.index(Answer) > kinds.index(PersistElection) + 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote(EPOCH - 1, last=LogPosition(1, 3)), ErrorCode.FENCED_LEADER_EPOCH),
        (vote(last=LogPosition(EPOCH, 3)), ErrorCode.INVALID_REQUEST),
        (vote(last=LogPosition(1, -1)), ErrorCode.INVALID_REQUEST),
        (vote(last=LogPosition(-1, 1)), ErrorCode.INVALID_REQUEST),
        (replace(vote(), voter=member(3).key), ErrorCode.INVALID_VOTER_KEY),
        (replace(vote(), candidate=ReplicaKey(-1, ZERO_UUID)), ErrorCode.INVALID_REQUEST),
        (begin(EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
        (begin(EPOCH, -1), ErrorCode.INVALID_REQUEST),
        (replace(begin(EPOCH), voter=member(3).key), ErrorCode.INVALID_VOTER_KEY),
        (EndEpoch(EPOCH - 1, 2, (), ()), ErrorCode.FENCED_LEADER_EPOCH),
        (Fetch(EPOCH - 1, member(2).key, 0, 0, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (Fetch(EPOCH, member(2).key, 0, 0, 0), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (Fetch(EPOCH + 1, member(2).key, 0, 0, 0), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (Fetch(EPOCH, member(2).key, -1, 0, 0), ErrorCode.INVALID_REQUEST),
        (Fetch(EPOCH, member(2).key, 0, EPOCH + 1, 0), ErrorCode.INVALID_REQUEST),
    ],
)
def test_requests_that_are_refused(request_: Any, error: ErrorCode) -> None:
    reply = Replica().ask(request_)
    assert reply.error is error
    assert reply.standing.epoch == EPOCH or isinstance(request_, BeginEpoch)


def test_a_candidate_claims_only_what_is_on_the_medium() -> None:
    replica = Replica().stand()
    replica.log.disk.entries.append(Entry(4, "unsynced"))
    effects = replica.reply(2, VoteReply(Standing(EPOCH), is_granted=True))
    assert effects == [FlushLog()]
    replica.flush()
    assert replica.state.role is Role.CANDIDATE


def test_an_election_that_is_lost_is_tried_again_after_a_while() -> None:
    replica = Replica().run_for_election()
    for peer_id in (2, 3):
        replica.reply(peer_id, VoteReply(Standing(EPOCH + 1)))
    assert replica.state.role is Role.CANDIDATE
    assert replica.now_ms < replica.state.wake_at_ms < replica.now_ms + 1_000
    replica.later(1_000)
    assert (replica.state.role, replica.state.epoch) == (Role.PROSPECTIVE, EPOCH + 1)


def test_a_pre_vote_that_is_lost_changes_no_epoch() -> None:
    replica = Replica().stand()
    for peer_id in (2, 3):
        replica.reply(peer_id, VoteReply(Standing(EPOCH)))
    assert (replica.state.role, replica.state.epoch) == (Role.UNATTACHED, EPOCH)


def test_an_answer_that_comes_too_late_elects_nobody() -> None:
    replica = Replica().run_for_election()
    number = replica.state.peers[2].number
    assert number is not None
    replica.ask(begin(EPOCH + 2, 3))
    replica.step(ReplyReceived(2, number, VoteReply(Standing(EPOCH + 1), is_granted=True)))
    assert (replica.state.role, replica.state.leader_id) == (Role.FOLLOWER, 3)


# -- followers


def test_a_refused_connection_is_evidence_and_slowness_is_not() -> None:
    for failure, is_evidence in (
        (Failure.REFUSED, True),
        (Failure.LOST, False),
        (Failure.TIMED_OUT, False),
    ):
        replica = Replica().follow()
        replica.reply(2, fetched())
        replica.fail(2, failure)
        replica.later(60)
        assert (replica.state.role is Role.PROSPECTIVE) is is_evidence, failure


def test_a_follower_stands_when_it_had_no_answer_for_the_fetch_timeout() -> None:
    replica = Replica().follow()
    replica.later(1_999)
    assert replica.state.role is Role.FOLLOWER
    replica.later(1)
    assert replica.state.role is Role.PROSPECTIVE
    for peer_id in (2, 3):
        replica.reply(peer_id, VoteReply(Standing(EPOCH, 2, member(2).endpoints)))
    assert replica.state.role is Role.FOLLOWER, "the others say that the leader leads"


def test_a_follower_fetches_on_when_what_it_got_is_on_the_medium() -> None:
    replica = Replica().follow()
    effects = replica.reply(2, fetched(records=b"some", high_watermark=11))
    assert effects == [AppendRecords(EPOCH, b"some")]
    replica.log.disk.entries.append(Entry(EPOCH, "some"))
    assert replica.step(LogAppended()) == [AdvanceHighWatermark(11), FlushLog()]
    effects = replica.flush()
    assert [e.request.offset for e in effects if isinstance(e, Send)] == [11]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("diverging", "offset"),
    [
        (LogPosition(1, 3), 3),
        (LogPosition(1, 7), 5),
        (LogPosition(2, 8), 5),
        (LogPosition(4, 8), 8),
    ],
)
def test_where_a_follower_cuts_its_log(diverging: LogPosition, offset: int) -> None:
    replica = Replica().follow()
    assert replica.reply(2, fetched(diverging=diverging)) == [TruncateLog(offset)]


def test_what_is_committed_is_never_cut() -> None:
    replica = Replica().follow()
    replica.reply(2, fetched(high_watermark=9))
    assert replica.state.high_watermark == 9
    with pytest.raises(QuorumError, match="a voter has lost its data"):
        replica.reply(2, fetched(diverging=LogPosition(4, 8)))


@pytest.mark.parametrize(("position", "backoff_ms"), [(0, 0), (1, 500), (2, 1000)])
def test_the_preferred_successor_stands_first(position: int, backoff_ms: int) -> None:
    replica = Replica().follow()
    preferred = [member(3).key, member(2).key]
    preferred.insert(position, member(1).key)
    replica.ask(EndEpoch(EPOCH, 2, member(2).endpoints, tuple(preferred[:2])))
    if backoff_ms:
        replica.later(backoff_ms - 1)
        assert replica.state.role is Role.FOLLOWER
        replica.later(1)
    assert replica.state.role is Role.PROSPECTIVE


# -- leaders


def test_a_new_leader_begins_its_epoch_and_says_so() -> None:
    replica = Replica().lead()
    assert [e for e in replica.effects if isinstance(e, AppendEpochStart | AnnounceLeader)] == [
        AppendEpochStart(EPOCH + 1, (1, 2)),
        AnnounceLeader(1, EPOCH + 1),
    ]
    assert replica.sent() == [(2, "BeginEpoch"), (3, "BeginEpoch")]


def test_what_a_majority_has_is_committed_from_the_epochs_start_on() -> None:
    replica = Replica().lead()
    replica.flush()
    assert replica.ask(fetch(2, 10)).high_watermark == -1, "not of this epoch"
    reply = replica.ask(fetch(2, 11, last_epoch=6, high_watermark=-1))
    assert AdvanceHighWatermark(11) in replica.effects
    assert reply.high_watermark == 11
    replica.append(EPOCH + 1)
    replica.ask(fetch(3, 12, last_epoch=6))
    assert replica.state.high_watermark == 11, "the leader's own copy is not flushed"
    assert AdvanceHighWatermark(12) in replica.flush()


def test_a_fetch_waits_for_news() -> None:
    replica = Replica().lead()
    replica.flush()
    assert replica.ask(fetch(2, 11, last_epoch=6)) is None
    replica.append(EPOCH + 1)
    assert [e.token for e in replica.effects if isinstance(e, Answer)] == [7]
    replica.flush()
    assert replica.ask(fetch(2, 12, last_epoch=6, high_watermark=-1)) is not None
    assert replica.ask(fetch(2, 12, last_epoch=6, high_watermark=12)) is None
    assert [e for e in replica.later(499) if isinstance(e, Answer)] == []
    assert [e.token for e in replica.later(1) if isinstance(e, Answer)] == [7]


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (10, 4, None),
        (5, 1, None),
        (0, 0, None),
        (7, 1, LogPosition(1, 5)),
        (10, 3, LogPosition(1, 5)),
        (12, 4, LogPosition(4, 10)),
        (12, 6, LogPosition(6, 11)),
    ],
)
def test_where_logs_part(offset: int, last_epoch: int, diverging: LogPosition | None) -> None:
    replica = Replica().lead()
    reply = replica.ask(fetch(2, offset, last_epoch=last_epoch))
    assert reply.diverging == diverging


def test_a_leader_that_no_majority_fetches_from_resigns() -> None:
    replica = Replica().lead()
    replica.later(2_000)
    replica.ask(fetch(3, 11, last_epoch=6))
    replica.later(2_999)
    assert replica.state.role is Role.LEADER
    replica.later(1)
    assert isinstance(replica.state.role_state, Resigned)
    assert [key.id for key in replica.state.role_state.preferred] == [3, 2]
    assert AnnounceLeader(-1, EPOCH + 1) in replica.effects
    replica.later(2_000)
    assert replica.state.epoch == EPOCH + 2, "in its own epoch others would take it for leader"


def test_a_leader_that_stops_resigns_and_stays_so() -> None:
    replica = Replica().lead()
    replica.step(StopRequested())
    assert [name for _, name in replica.sent()] == ["EndEpoch", "EndEpoch"]
    replica.later(60_000)
    assert replica.state.role is Role.RESIGNED


# -- the table


def test_every_replica_is_in_a_role_that_the_table_reaches() -> None:
    assert set(TRANSITIONS.values()) == set(Role)
    assert {role for role, _ in TRANSITIONS} == set(Role)
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)


@pytest.mark.parametrize("trigger", Trigger)
def test_what_the_table_does_not_list_is_a_bug(trigger: Trigger) -> None:
    states: dict[Role, Any] = {
        Role.UNATTACHED: Unattached(0),
        Role.PROSPECTIVE: Prospective(0),
        Role.FOLLOWER: Follower(0),
        Role.LEADER: Leader(0, 0, 0),
        Role.RESIGNED: Resigned(0),
    }
    for role, role_state in states.items():
        replica = Replica()
        if TRANSITIONS.get((Role.UNATTACHED, trigger)) is role:
            enter(replica.state, trigger, role_state)
            assert replica.state.role is role
        else:
            with pytest.raises(TransitionError, match=trigger.name):
                enter(replica.state, trigger, role_state)
