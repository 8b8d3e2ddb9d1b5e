"""The end of a log whose leader does not answer, with a client that is no network's."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from barnabas.connect.worker.distributed import kafka_log
from barnabas.connect.worker.distributed.clients import read_clients
from barnabas.connect.worker.distributed.kafka_log import KafkaLog, LogTimeoutError
from support.stale_admin import StaleAdmin


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> KafkaLog:
    monkeypatch.setattr(kafka_log, "AdminClient", StaleAdmin)
    monkeypatch.setattr(kafka_log, "_PAUSE_S", 0.0)
    made = KafkaLog(
        read_clients({"bootstrap.servers": "127.0.0.1:1"}, "worker"), "configs", lambda *_: None
    )
    made._positions = {0: 5}
    return made


def test_the_end_is_asked_anew_until_the_leader_tells_it(log: KafkaLog) -> None:
    fenced = KafkaException(KafkaError(KafkaError.FENCED_LEADER_EPOCH))
    StaleAdmin.begin(fenced, OFFSET_INVALID, 5)
    log._ask_anew()
    log.read_to_end(60)
    assert not StaleAdmin.answers


def test_an_end_that_nobody_tells_is_not_reached(log: KafkaLog) -> None:
    StaleAdmin.begin(OFFSET_INVALID, OFFSET_INVALID)
    log._ask_anew()
    with pytest.raises(LogTimeoutError, match="is not known"):
        log.read_to_end(-1)
