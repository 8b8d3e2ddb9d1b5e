"""Logs of one topic against what it holds: lost acknowledgements, restarts, other leaders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.kafka import admin, fenced_writer, topic_log
from barnabas.kafka.fenced_writer import AppendError, FencedError
from barnabas.kafka.topic_log import LogLostError, LogRecord, TopicLog
from support.effort import examples
from support.topic_log_cluster import TOPIC, Cluster, Entry

ID = "leader"
keys = st.sampled_from([b"a", b"b", b"c"])
values = st.integers(0, 99).map(lambda n: b"%d" % n)
which = st.integers(0, 1)


class Instance:
    """A process with a log, which it opens again after a restart."""

    def __init__(self) -> None:
        self.taken: list[LogRecord] = []
        self.log = TopicLog({}, TOPIC, self.taken.append, is_committed_only=True)
        self.log.open()


class TopicLogs(RuleBasedStateMachine):
    """Two instances over one topic."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.patches: list[Any] = [
            mock.patch.object(fenced_writer, "Producer", self.cluster.producer),
            mock.patch.object(topic_log, "Consumer", self.cluster.consumer),
            mock.patch.object(admin, "AdminClient", self.cluster.admin),
        ]
        for patch in self.patches:
            patch.start()
        self.instances = [Instance(), Instance()]
        self.history: dict[int, tuple[bytes | None, bytes | None]] = {}
        """All that was ever committed, by offset: compaction may take a record from who reads."""
        self.expected: list[tuple[int, bytes, bytes | None]] = []
        """The records whose writes the logs acknowledged."""

    def teardown(self) -> None:
        for patch in self.patches:
            patch.stop()

    @rule(n=which)
    def lead(self, n: int) -> None:
        instance = self.instances[n]
        if instance.log.leads:
            return
        instance.log.lead(ID)
        taken = [tuple(record)[1:] for record in instance.taken]
        assert not self.cluster.open
        current = self.cluster.committed()
        assert current == [record for record in taken if record in current]

    @rule(n=which, pairs=st.lists(st.tuples(keys, values), min_size=1, max_size=3))
    def append(self, n: int, pairs: list[tuple[bytes, bytes | None]]) -> None:
        log = self.instances[n].log
        before = self.cluster.committed()
        led = log.leads
        try:
            offsets = log.append(pairs)
        except FencedError:
            assert self.cluster.committed() == before
            assert not log.leads
        except AppendError:
            assert led
            assert not log.leads
        else:
            assert led
            written = [(at, *pair) for at, pair in zip(offsets, pairs, strict=True)]
            assert self.cluster.committed() == [*before, *written]
            self.expected += written
            assert log.leads

    @rule(fault=st.sampled_from(["lost", "request"]))
    def go_wrong(self, fault: str) -> None:
        self.cluster.fault = fault

    @rule(key=keys, value=st.none() | values)
    def others_write(self, key: bytes, value: bytes | None) -> None:
        self.cluster.put(Entry(key, value))

    @rule(n=which)
    def read(self, n: int) -> None:
        instance = self.instances[n]
        instance.log.read_to_end()
        current = self.cluster.committed()
        taken = [tuple(record)[1:] for record in instance.taken]
        assert current == [record for record in taken if record in current]

    @rule(n=which)
    def restart(self, n: int) -> None:
        self.instances[n].log.close()
        self.instances[n] = Instance()

    @rule()
    def compact(self) -> None:
        self.cluster.compact()

    @invariant()
    def each_record_is_taken_once_and_in_order(self) -> None:
        for offset, key, value in self.cluster.committed():
            assert self.history.setdefault(offset, (key, value)) == (key, value)
        for instance in self.instances:
            offsets = [record.offset for record in instance.taken]
            assert offsets == sorted(set(offsets))
            for record in instance.taken:
                assert self.history[record.offset] == (record.key, record.value)

    @invariant()
    def what_was_promised_is_kept(self) -> None:
        for offset, key, value in self.expected:
            assert self.history[offset] == (key, value)


TestTopicLogs = TopicLogs.TestCase
TestTopicLogs.settings = settings(max_examples=examples(15), stateful_step_count=30, deadline=None)


def _patched(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr(fenced_writer, "Producer", cluster.producer)
    monkeypatch.setattr(topic_log, "Consumer", cluster.consumer)
    monkeypatch.setattr(admin, "AdminClient", cluster.admin)
    return cluster


def test_a_topic_that_was_made_again_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = _patched(monkeypatch)
    instance = Instance()
    cluster.put(Entry(b"a", b"1"))
    cluster.put(Entry(b"a", b"2"))
    instance.log.read_to_end()
    cluster.make_again()
    for value in (b"3", b"4", b"5"):
        cluster.put(Entry(b"a", value))
    with pytest.raises(LogLostError, match="made again"):
        instance.log.lead(ID)
    assert not instance.log.leads
    with pytest.raises(LogLostError):
        instance.log.read_to_end()


@pytest.mark.parametrize(
    ("lose", "why"),
    [
        (Cluster.cut_off, "no longer has offset 1"),
        (Cluster.make_again, "it has been made again"),
    ],
)
def test_a_topic_that_no_longer_has_what_was_read_is_lost(
    monkeypatch: pytest.MonkeyPatch, lose: Callable[[Cluster], None], why: str
) -> None:
    cluster = _patched(monkeypatch)
    instance = Instance()
    cluster.put(Entry(b"a", b"1"))
    instance.log.read_to_end()
    lose(cluster)
    with pytest.raises(LogLostError, match=why):
        instance.log._poll(0.0)


def test_a_topic_that_was_made_again_is_read_again_where_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = _patched(monkeypatch)
    taken: list[LogRecord] = []
    log = TopicLog({}, TOPIC, taken.append, reads_again=True)
    log.open()
    cluster.put(Entry(b"a", b"1"))
    log.read_to_end()
    cluster.make_again()
    log._poll(0.0)
    cluster.put(Entry(b"a", b"2"))
    log.read_to_end()
    assert [record.value for record in taken] == [b"1", b"2"]
