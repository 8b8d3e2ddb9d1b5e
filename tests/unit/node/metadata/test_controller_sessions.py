"""Which brokers the controller counts as live."""

from barnabas.base.ids import Uuid
from barnabas.node.metadata.controller.sessions import BrokerSessions
from barnabas.node.metadata.image import BrokerImage


def broker(broker_id: int, *, epoch: int = 5, fenced: bool = False) -> BrokerImage:
    return BrokerImage(
        id=broker_id,
        epoch=epoch,
        incarnation_id=Uuid(bytes(16)),
        listeners={},
        rack=None,
        fenced=fenced,
        in_controlled_shutdown=False,
        log_dirs=(),
    )


BROKERS = [broker(1), broker(2), broker(3, fenced=True)]


def overdue(sessions: BrokerSessions, now_ms: int) -> list[int]:
    return [late.id for late in sessions.overdue(BROKERS, now_ms)]


def test_a_new_controller_gives_every_broker_the_whole_time() -> None:
    sessions = BrokerSessions(9000)
    sessions.start(BROKERS, 100)
    assert overdue(sessions, 9099) == []
    assert overdue(sessions, 9100) == [1, 2]


def test_heartbeats_keep_a_session() -> None:
    sessions = BrokerSessions(9000)
    sessions.start(BROKERS, 0)
    sessions.heard(1, 5, 8000)
    assert overdue(sessions, 9000) == [2]
    assert (sessions.is_live(1, 9000), sessions.is_live(3, 0)) == (True, False)


def test_an_id_is_held_while_its_process_is_connected() -> None:
    sessions = BrokerSessions(9000)
    sessions.start(BROKERS, 0)
    assert not sessions.holds_id(1, 1), "nothing was heard of it by this controller"
    sessions.heard(1, 5, 10)
    assert sessions.holds_id(1, 20)
    assert not sessions.holds_id(1, 9010)
    sessions.disconnected(1, 4)
    assert sessions.holds_id(1, 20), "that was the connection of an incarnation before"
    sessions.disconnected(1, 5)
    assert not sessions.holds_id(1, 20)
    assert sessions.is_live(1, 20), "a lost connection is no proof of death"


def test_the_end_of_one_incarnation_is_not_that_of_the_next() -> None:
    sessions = BrokerSessions(9000)
    sessions.heard(1, 6, 0)
    sessions.end(1, 5)
    assert sessions.is_live(1, 1)
    sessions.end(1, 6)
    assert not sessions.is_live(1, 1)
