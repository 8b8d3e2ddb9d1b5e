"""Tasks that are stopped while records wait for another system: none of them is left out."""

from __future__ import annotations

from collections.abc import Iterator

import connect_task_plugins as plugins
import pytest

from barnabas.connect.testing import ConnectKit

PLUGINS = "connect_task_plugins:"
WORKER = {"key.converter": f"{PLUGINS}Text", "value.converter": f"{PLUGINS}Text"}
PATIENT = {
    "transforms": "away",
    "transforms.away.type": f"{PLUGINS}Away",
    "errors.tolerance": "all",
    "errors.retry.timeout": "-1",
}
COLLECT = {"connector.class": f"{PLUGINS}CollectorSink", "topics": "in", **PATIENT}
NUMBERS = {
    "connector.class": f"{PLUGINS}NumberSource",
    "topic": "numbers",
    "count": "12",
    **PATIENT,
}


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectKit]:
    plugins.Collector.values.clear()
    plugins.Collector.trouble.clear()
    plugins.Away.tried.clear()
    monkeypatch.setattr(plugins.Away, "is_away", True)
    with ConnectKit(WORKER) as kit:
        yield kit


@pytest.mark.parametrize("letters", [{}, {"errors.deadletterqueue.topic.name": "dead"}])
def test_a_sink_that_is_stopped_while_it_tries_again_loses_nothing(
    kit: ConnectKit, letters: dict[str, str]
) -> None:
    for number in range(5):
        kit.produce("in", b"%d" % number)
    running = kit.start("c", {**COLLECT, **letters})
    kit.wait_until(lambda: plugins.Away.tried)
    running.stop()
    assert running.states == ["STOPPED"]
    assert not kit.committed("c")
    plugins.Away.is_away = False
    again = kit.start("c", {**COLLECT, **letters})
    kit.wait_until(lambda: kit.committed("c") == {("in", 0): 5})
    again.stop()
    assert [value for _, _, value in plugins.Collector.values] == list("01234")
    assert not kit.records("dead")


@pytest.mark.parametrize("is_exactly_once", [False, True])
def test_a_source_that_is_stopped_while_it_tries_again_loses_nothing(
    kit: ConnectKit, *, is_exactly_once: bool
) -> None:
    running = kit.start("n", NUMBERS, is_exactly_once=is_exactly_once)
    kit.wait_until(lambda: plugins.Away.tried)
    running.stop()
    assert running.states == ["STOPPED"]
    assert not kit.offsets("n")
    plugins.Away.is_away = False
    kit.start("n", NUMBERS, is_exactly_once=is_exactly_once)
    records = kit.wait_for_records("numbers", 12)
    assert sorted(int(record.key or b"") for record in records) == list(range(12))
