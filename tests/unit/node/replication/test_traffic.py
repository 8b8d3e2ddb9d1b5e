"""Traffic counters of topics; their sums never fall."""

from __future__ import annotations

from barnabas.node.replication.traffic import Traffic
from barnabas.protocol.errors import ErrorCode


def test_what_a_topic_counted_stays_in_the_sum_when_it_has_left() -> None:
    traffic = Traffic()
    traffic.of("a").messages_in += 5
    traffic.of("b").messages_in += 2
    traffic.forget("a")
    traffic.forget("never here")
    assert list(traffic.by_topic) == ["b"]
    assert traffic.of_all().messages_in == 7
    assert traffic.of("a").messages_in == 0


def test_only_unexpected_errors_make_a_produce_request_failed() -> None:
    topic = Traffic().of("a")
    topic.refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, 100)
    topic.refused(ErrorCode.MESSAGE_TOO_LARGE, 1000)
    topic.refused(ErrorCode.CORRUPT_MESSAGE, 10)
    assert (topic.failed_produces, topic.bytes_rejected, topic.invalid_crcs) == (0, 1000, 1)
    topic.refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 10)
    assert (topic.failed_produces, topic.invalid_sequences) == (1, 1)
