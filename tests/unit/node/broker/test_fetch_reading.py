"""What a leader or follower gives to whom: the checks of a fetch, as a table."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.fetch.codec import FetchAnswer
from barnabas.node.broker.fetch.reading import Reader
from barnabas.node.broker.fetch.sessions import FetchSession, FetchTarget
from barnabas.node.config.node_config import RACK_AWARE_SELECTOR
from barnabas.node.metadata.image import BrokerImage, Endpoint, MetadataImage, PartitionImage
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.partition import Partition
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, ReplicaState
from barnabas.protocol.well_known import NO_SESSION
from support.logs import TOPIC_ID, TOPIC_PARTITION, LogBench, make_batch

BROKER_EPOCH = 10
LEADER_EPOCH = 5


def broker(node_id: int, *, fenced: bool = False, rack: str | None = None) -> BrokerImage:
    return BrokerImage(
        id=node_id,
        epoch=BROKER_EPOCH,
        incarnation_id=TOPIC_ID,
        listeners={"PLAINTEXT": Endpoint(f"host{node_id}", 9092, 0)},
        rack=rack if rack is not None else f"rack{node_id}",
        fenced=fenced,
        in_controlled_shutdown=False,
        log_dirs=(),
    )


class Bench:
    """Node 1 with one partition whose log is a b | c d e, in epochs 3 and 5; b is committed."""

    def __init__(self, leader: int = 1) -> None:
        self.bench = LogBench()
        self.bench.append(make_batch("a"), epoch=3)
        self.bench.append(make_batch("b"), epoch=3)
        self.context = ReplicaContext(1, self.bench.clock)
        self.context.brokers = {node_id: broker(node_id) for node_id in (1, 2, 3, 4)}
        self.partition = Partition(TOPIC_PARTITION, TOPIC_ID, self.bench.log, self.context)
        placed = PartitionImage(
            replicas=(1, 2, 3), isr=(1, 2), leader=leader, leader_epoch=5, partition_epoch=7
        )
        if leader == 1:
            self.partition.become_leader(placed)
        else:
            self.partition.become_follower(placed)
        for value in "cde":
            self.bench.append(make_batch(value), epoch=LEADER_EPOCH)
        self.partition._advance(2)
        quota = SimpleNamespace(is_active=False)
        self.services: Any = SimpleNamespace(
            authorizer=ALLOW_ALL,
            replicas=SimpleNamespace(
                find=lambda topic, index: self.partition,
                fetchers=SimpleNamespace(leader_quota=quota),
            ),
            config=SimpleNamespace(get_str_or_none=lambda key: RACK_AWARE_SELECTOR),
            image=MetadataImage(brokers=self.context.brokers),
        )

    def read(
        self,
        *,
        replica: int = -1,
        offset: int = 0,
        epoch: int = -1,
        last_epoch: int = -1,
        broker_epoch: int = BROKER_EPOCH,
        version: int = 17,
        rack: str = "",
        log_start: int = 0,
    ) -> FetchAnswer:
        request = FetchRequest(
            replica_id=replica if version < 15 else -1,
            replica_state=ReplicaState(replica_id=replica, replica_epoch=broker_epoch),
            rack_id=rack,
        )
        connection: Any = SimpleNamespace(times=None, peer_host="client", listener_name="PLAINTEXT")
        context = RequestContext(ApiKey.FETCH, version, 1, None, connection, ANONYMOUS)
        session = FetchSession(NO_SESSION, False, 0, is_follower=replica >= 0)
        target = FetchTarget("topic", 0, offset, 1 << 20, epoch, last_epoch, log_start)
        session.update([target], [])
        reader = Reader.of(self.services, context, request, session)
        return reader.read(target, 1 << 20, min_one_batch=True, is_first_look=True)

    def look(self, session: FetchSession, *, replica: int) -> None:
        """Begin a fetch of a follower's session."""
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=replica, replica_epoch=BROKER_EPOCH)
        )
        connection: Any = SimpleNamespace(times=None, peer_host="client", listener_name="PLAINTEXT")
        context = RequestContext(ApiKey.FETCH, 17, 1, None, connection, ANONYMOUS)
        reader = Reader.of(self.services, context, request, session)
        for target in list(session.ready):
            reader.read(target, 1 << 20, min_one_batch=True, is_first_look=True)
            del session.ready[target]


class Case(NamedTuple):
    name: str
    asked: dict[str, Any]
    error: ErrorCode
    batches: int = 0
    diverging: tuple[int, int] | None = None
    leader: int = 1


CASES = [
    Case("a consumer reads what is committed", {}, ErrorCode.NONE, 2),
    Case("a follower reads to the end", {"replica": 2}, ErrorCode.NONE, 5),
    Case("a follower of an older version too", {"replica": 2, "version": 12}, ErrorCode.NONE, 5),
    Case("who debugs reads to the end", {"replica": -2}, ErrorCode.NONE, 5),
    Case("beyond the end", {"offset": 6}, ErrorCode.OFFSET_OUT_OF_RANGE),
    Case("at the end", {"replica": 2, "offset": 5}, ErrorCode.NONE),
    Case("a consumer beyond the watermark waits", {"offset": 4}, ErrorCode.NONE),
    Case("an older epoch", {"epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
    Case("a newer epoch", {"epoch": 6}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    Case("this epoch", {"epoch": 5}, ErrorCode.NONE, 2),
    Case("no replica", {"replica": 4}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    Case("not yet a replica", {"replica": 4, "epoch": 5}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    Case(
        "an incarnation that is over",
        {"replica": 2, "broker_epoch": BROKER_EPOCH - 1},
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ),
    Case("one newer than the image", {"replica": 2, "broker_epoch": 11}, ErrorCode.NONE, 5),
    Case("no broker epoch", {"replica": 2, "broker_epoch": -1}, ErrorCode.NONE, 5),
    Case("the same history", {"replica": 2, "offset": 2, "last_epoch": 3}, ErrorCode.NONE, 3),
    Case(
        "another history",
        {"replica": 2, "offset": 4, "last_epoch": 3},
        ErrorCode.NONE,
        diverging=(3, 2),
    ),
    Case(
        "an epoch that is not in this log",
        {"replica": 2, "offset": 3, "last_epoch": 4},
        ErrorCode.NONE,
        diverging=(3, 2),
    ),
    Case(
        "an epoch newer than all",
        {"replica": 2, "offset": 3, "last_epoch": 6},
        ErrorCode.OFFSET_OUT_OF_RANGE,
    ),
    Case(
        "an epoch older than all, of nothing",
        {"replica": 2, "offset": 0, "last_epoch": 1},
        ErrorCode.NONE,
        5,
    ),
    Case("a consumer at a follower", {}, ErrorCode.NONE, 2, leader=2),
    Case(
        "an old consumer at a follower",
        {"version": 10},
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        leader=2,
    ),
    Case("a follower at a follower", {"replica": 3}, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=2),
    Case(
        "an epoch is looked at before the role",
        {"replica": 3, "epoch": 4},
        ErrorCode.FENCED_LEADER_EPOCH,
        leader=2,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_answered(case: Case) -> None:
    answer = Bench(case.leader).read(**case.asked)
    assert answer.error == case.error
    assert len(answer.parts) == case.batches
    assert answer.diverging == case.diverging
    if case.error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        is_told = case.asked.get("version", 17) >= 16
        assert answer.current_leader == ((case.leader, 5) if is_told else None)


def test_a_followers_offset_says_what_it_has_and_commits_it() -> None:
    bench = Bench()
    leading = bench.partition.leading
    assert leading is not None
    bench.context.brokers = {**bench.context.brokers, 3: broker(3, fenced=True)}
    answer = bench.read(replica=2, offset=4, log_start=1)
    assert answer.high_watermark == 4
    follower = leading.follower(2)
    assert follower is not None
    assert (follower.log_end_offset, follower.log_start_offset) == (4, 1)
    assert bench.read(replica=2, offset=9).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert follower.log_end_offset == 4, "an offset that cannot be is not believed"
    bench.read(replica=2, offset=5, last_epoch=3)
    assert follower.log_end_offset == 4, "nor one of another history"


def test_a_fetch_that_comes_late_from_a_former_incarnation_is_not_believed() -> None:
    bench = Bench()
    leading = bench.partition.leading
    assert leading is not None
    follower = leading.follower(3)
    assert follower is not None
    assert bench.read(replica=3, offset=5, broker_epoch=BROKER_EPOCH + 1).error == ErrorCode.NONE
    late = bench.read(replica=3, offset=3)  # the image knows no later epoch than this one's
    assert late.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (follower.log_end_offset, follower.broker_epoch) == (5, BROKER_EPOCH + 1)


def test_a_session_says_all_again_when_another_has_spoken_for_its_follower() -> None:
    bench = Bench()
    leading = bench.partition.leading
    assert leading is not None
    follower = leading.follower(3)
    assert follower is not None
    session = FetchSession(1, False, 0, is_follower=True)
    session.update([FetchTarget("topic", 0, 5, 1 << 20, log_start_offset=0)], [])
    bench.look(session, replica=3)
    assert (follower.log_end_offset, follower.source) == (5, session.source)
    session.update([], [])
    assert not session.ready
    # From a connection that the follower has given up.
    bench.read(replica=3, offset=4)
    assert follower.log_end_offset == 4
    session.update([], [])
    bench.look(session, replica=3)
    assert (follower.log_end_offset, follower.source) == (5, session.source)
    session.update([], [])
    assert not session.ready


@pytest.mark.parametrize(
    ("rack", "asked", "preferred"),
    [
        ("rack2", {}, 2),
        ("rack1", {}, -1),
        ("rack3", {}, -1),
        ("elsewhere", {}, -1),
        ("rack2", {"offset": 5}, -1),
        ("rack2", {"version": 10}, -1),
        ("", {}, -1),
    ],
    ids=[
        "its rack",
        "the leader's",
        "one not in sync",
        "none",
        "it lacks the offset",
        "too old to be told",
        "no rack",
    ],
)
def test_a_consumer_is_sent_to_the_replica_of_its_rack(
    rack: str, asked: dict[str, Any], preferred: int
) -> None:
    bench = Bench()
    bench.read(replica=2, offset=4)
    answer = bench.read(rack=rack, **asked)
    assert answer.preferred_replica == preferred
    assert bool(answer.parts) == (preferred < 0 and "offset" not in asked)
