"""The ends of topics while a leader is dead, with clients that are no network's."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicCollection

from barnabas.demo.catchup import TopicEnds
from barnabas.kafka import admin
from support.stale_admin import StaleAdmin


class Admin(StaleAdmin):
    """Knows of the topic `there`, of two partitions."""

    def describe_topics(self, topics: TopicCollection, **_: object) -> dict[str, Future[Any]]:
        absent = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        there = SimpleNamespace(partitions=[SimpleNamespace(id=number) for number in range(2)])
        found: dict[str, Future[Any]] = {}
        for name in topics.topic_names:
            found[name] = Future()
            if name == "there":
                found[name].set_result(there)
            else:
                found[name].set_exception(absent)
        return found


def test_an_end_that_nobody_told_is_asked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "AdminClient", Admin)
    Admin.begin("of topics", OFFSET_INVALID, 7)
    ends = TopicEnds({})
    with pytest.raises(KafkaException, match="leader did not answer"):
        ends.of(["there", "absent"])
    assert ends.of(["there", "absent"]) == {("there", 0): 7, ("there", 1): 7}
    assert ends.of(["absent"]) == {}
