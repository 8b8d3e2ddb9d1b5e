"""The config topic's records, as Kafka's workers write and read them."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed import records
from barnabas.connect.worker.distributed.config_log import (
    ConfigLog,
    ConnectorChanged,
    ConnectorRemoved,
    LoggerLevelChanged,
    RestartRequested,
    SessionKeyChanged,
    TargetStateChanged,
    TasksChanged,
    Update,
)
from barnabas.connect.worker.distributed.records import Pair, SessionKey
from barnabas.connect.worker.state import RestartRequest


class Topic:
    """A config topic and who reads it."""

    def __init__(self) -> None:
        self.records: list[tuple[int, Pair]] = []
        self.log = ConfigLog()

    def write(self, *pairs: Pair) -> list[Update | None]:
        found = []
        for pair in pairs:
            self.records.append((len(self.records), pair))
            found.append(self.log.apply(len(self.records) - 1, *pair))
        return found

    def configure(self, name: str, tasks: int) -> Update | None:
        ids = [TaskId(name, number) for number in range(tasks)]
        return self.write(
            *(records.task_config(task, {"n": str(task.task)}) for task in ids),
            records.tasks_commit(name, tasks),
        )[-1]


BYTES = [
    (
        records.connector_config("a", {"name": "a", "x": "ü/\n"}),
        ("connector-a", '{"properties":{"name":"a","x":"ü/\\n"}}'.encode()),
    ),
    (
        records.task_config(TaskId("a-b", 3), {"k": None}),
        ("task-a-b-3", b'{"properties":{"k":null}}'),
    ),
    (records.tasks_commit("a", 2), ("commit-a", b'{"tasks":2}')),
    (
        records.target_state("a", "STOPPED"),
        ("target-state-a", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
    ),
    (
        records.target_state("a", "STARTED"),
        ("target-state-a", b'{"state":"STARTED","state.v2":"STARTED"}'),
    ),
    (records.task_count("a", 2), ("tasks-fencing-a", b'{"task-count":2}')),
    (
        records.session_key(SessionKey(b"\0\1", "HmacSHA256", 5)),
        ("session-key", b'{"key":"AAE=","algorithm":"HmacSHA256","creation-timestamp":5}'),
    ),
    (
        records.restart_request(RestartRequest("a", only_failed=True, include_tasks=False)),
        ("restart-connector-a", b'{"include-tasks":false,"only-failed":true}'),
    ),
    (records.logger_level("root", "DEBUG"), ("logger-cluster-root", b'{"level":"DEBUG"}')),
]


@pytest.mark.parametrize(("written", "expected"), BYTES)
def test_records_are_written_as_kafka_writes_them(written: Pair, expected: Pair) -> None:
    assert written == expected


def test_a_connector_is_configured_and_deleted() -> None:
    topic = Topic()
    assert topic.write(records.connector_config("a", {"x": "1"})) == [ConnectorChanged("a")]
    assert topic.log.state.target_states == {"a": "STARTED"}
    assert topic.configure("a", 2) == TasksChanged("a", (TaskId("a", 0), TaskId("a", 1)))
    state = topic.log.state.copy()
    assert topic.write(*records.removal("a")) == [ConnectorRemoved("a"), None]
    assert topic.log.state.tasks("a") == ()
    assert not topic.log.state.task_configs
    assert not topic.log.state.target_states
    assert state.tasks("a") == (TaskId("a", 0), TaskId("a", 1))
    assert state.offset == 4


def test_tasks_wait_for_the_commit() -> None:
    topic = Topic()
    topic.write(records.connector_config("a", {}))
    topic.write(records.task_config(TaskId("a", 0), {"v": "1"}))
    assert topic.log.state.tasks("a") == ()
    topic.write(records.tasks_commit("a", 1))
    topic.write(records.task_config(TaskId("a", 0), {"v": "2"}))
    assert topic.log.state.task_configs == {TaskId("a", 0): {"v": "1"}}


def test_a_commit_without_its_tasks_makes_the_connector_inconsistent() -> None:
    topic = Topic()
    topic.write(
        records.connector_config("a", {}),
        records.task_config(TaskId("a", 1), {}),
        records.tasks_commit("a", 2),
    )
    assert topic.log.state.inconsistent == {"a"}
    assert topic.log.state.tasks("a") == ()
    topic.configure("a", 2)
    assert not topic.log.state.inconsistent
    assert len(topic.log.state.tasks("a")) == 2


def test_fewer_tasks_leave_the_others_behind() -> None:
    topic = Topic()
    topic.write(records.connector_config("a", {}))
    topic.configure("a", 3)
    topic.configure("a", 1)
    assert topic.log.state.tasks("a") == (TaskId("a", 0),)
    assert topic.configure("a", 0) == TasksChanged("a", ())


def test_tasks_of_a_connector_that_compaction_has_forgotten_are_left_out() -> None:
    topic = Topic()
    assert topic.configure("gone", 2) is None
    assert topic.log.state.tasks("gone") == ()


def test_target_states_of_older_workers_are_read() -> None:
    topic = Topic()
    topic.write(records.connector_config("a", {}))
    assert topic.write(("target-state-a", b'{"state":"PAUSED"}')) == [TargetStateChanged("a")]
    assert topic.write(("target-state-a", b'{"state":"PAUSED","state.v2":"STOPPED"}')) == [
        TargetStateChanged("a")
    ]
    assert topic.log.state.target_states == {"a": "STOPPED"}
    assert topic.write(records.target_state("a", "STOPPED")) == [None]


def test_a_connector_may_be_created_stopped() -> None:
    topic = Topic()
    found = topic.write(records.target_state("a", "STOPPED"), records.connector_config("a", {}))
    assert found == [None, ConnectorChanged("a")]
    assert topic.log.state.target_states == {"a": "STOPPED"}


def test_fencing_is_due_after_each_configuration_of_tasks() -> None:
    topic = Topic()
    topic.write(records.connector_config("a", {}))
    topic.configure("a", 2)
    assert topic.log.state.pending_fencing == {"a"}
    topic.write(records.task_count("a", 2))
    assert not topic.log.state.pending_fencing
    assert topic.log.state.fenced_task_counts == {"a": 2}
    topic.configure("a", 1)
    assert topic.log.state.pending_fencing == {"a"}


def test_wishes_are_told() -> None:
    topic = Topic()
    key = SessionKey(b"secret", "HmacSHA256", 9)
    request = RestartRequest("a", only_failed=False, include_tasks=True)
    assert topic.write(
        records.session_key(key),
        records.restart_request(request),
        records.logger_level("n", "WARN"),
    ) == [SessionKeyChanged(key), RestartRequested(request), LoggerLevelChanged("n", "WARN")]
    assert topic.log.state.session_key == key
    assert "secret" not in repr(topic.log.state)


@pytest.mark.parametrize(
    "pair",
    [
        ("connector-a", b"[]"),
        ("connector-a", b'{"properties":"p4ssw0rd"}'),
        ("connector-a", b"{"),
        ("connector-a", b'{"properties":{"tasks.max":1,"b":"p4ssw0rd"}}'),
        ("connector-a", b'{"properties":{"connector.class":{"p4ssw0rd":[]}}}'),
        ("task-a-0", b'{"properties":{"connector.class":["p4ssw0rd"]}}'),
        ("task-a", b'{"properties":{}}'),
        ("task-a-0", None),
        ("target-state-a", b'{"state":3}'),
        ("target-state-a", b'{"state":"GONE"}'),
        ("session-key", None),
        ("session-key", b'{"key":"?","algorithm":"x","creation-timestamp":1}'),
        ("tasks-fencing-a", b'{"task-count":"2"}'),
        ("logger-cluster-a", b"null"),
        ("restart-connector-a", b"7"),
        ("what", b"{}"),
        (None, b"{}"),
    ],
)
def test_records_of_others_are_left_out(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    topic = Topic()
    before = topic.log.state.copy()
    with caplog.at_level(logging.ERROR):
        assert topic.write(pair) == [None]
    before.offset = 1
    assert topic.log.state == before
    assert caplog.records
    assert "p4ssw0rd" not in caplog.text


def test_settings_that_are_null_are_not_there() -> None:
    topic = Topic()
    topic.write(("connector-a", b'{"properties":{"b":null,"c":"d"}}'))
    assert topic.log.state.connectors == {"a": {"c": "d"}}


NAMES = st.sampled_from(["a", "b", "a-0"])


@given(
    st.lists(
        st.one_of(
            NAMES.map(lambda name: [records.connector_config(name, {"name": name})]),
            NAMES.map(records.removal),
            st.tuples(NAMES, st.integers(0, 3)).map(
                lambda pair: [
                    *(
                        records.task_config(TaskId(pair[0], number), {"n": str(number)})
                        for number in range(pair[1])
                    ),
                    records.tasks_commit(*pair),
                ]
            ),
            st.tuples(NAMES, st.sampled_from(["PAUSED", "STARTED", "STOPPED"])).map(
                lambda pair: [records.target_state(*pair)]
            ),
        ),
        max_size=12,
    )
)
def test_compaction_changes_nothing_or_is_seen(writes: list[list[Pair]]) -> None:
    """A reader of the compacted topic knows the same connectors, or says which tasks it lacks."""
    topic = Topic()
    for pairs in writes:
        topic.write(*pairs)
    last = {pair[0]: offset for offset, pair in topic.records}
    late = ConfigLog()
    for offset, pair in topic.records:
        if last[pair[0]] == offset:
            late.apply(offset, *pair)
    whole = topic.log.state
    assert late.state.connectors == whole.connectors
    for name, wanted in late.state.target_states.items():
        assert whole.target_states.get(name, wanted) == wanted
    for name in late.state.connectors:
        if name not in late.state.inconsistent and whole.tasks(name) and late.state.tasks(name):
            assert late.state.tasks(name) == whole.tasks(name)
