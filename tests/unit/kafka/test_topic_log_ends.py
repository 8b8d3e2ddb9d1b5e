"""The end of a log whose leader does not answer, with a client that is no network's."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from barnabas.kafka import admin, topic_log
from barnabas.kafka.topic_log import LogTimeoutError, TopicLog
from support.stale_admin import StaleAdmin


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> TopicLog:
    monkeypatch.setattr(admin, "AdminClient", StaleAdmin)
    monkeypatch.setattr(topic_log, "PAUSE_S", 0.0)
    made = TopicLog({"bootstrap.servers": "127.0.0.1:1"}, "configs", lambda _: None)
    made._positions = {0: 5}
    return made


def test_the_end_is_asked_for_until_the_leader_gives_it(log: TopicLog) -> None:
    fenced = KafkaException(KafkaError(KafkaError.FENCED_LEADER_EPOCH))
    StaleAdmin.begin(fenced, OFFSET_INVALID, 5)
    assert log.ends(60) == {0: 5}
    assert not StaleAdmin.answers


def test_an_end_that_nobody_gives_is_not_reached(log: TopicLog) -> None:
    StaleAdmin.begin(OFFSET_INVALID, OFFSET_INVALID)
    with pytest.raises(LogTimeoutError, match="is not known"):
        log.read_to_end(-1)
