"""The codecs written by hand equal the compiled ones, over every version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import Uuid
from barnabas.node.broker.fetch.codec import TOPIC_ID_FROM as FETCH_TOPIC_ID_FROM
from barnabas.node.broker.fetch.codec import FetchAnswer, NodeAddress, encode_fetch
from barnabas.node.broker.produce.codec import (
    TOPIC_ID_FROM,
    PartitionAnswer,
    encode_answers,
    parse_produce,
)
from barnabas.protocol.codec import encode, encode_parts
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages import fetch, produce

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
names = st.text("abc-é", min_size=1, max_size=200)
uuids = st.binary(min_size=16, max_size=16).map(Uuid)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
partitions = st.lists(st.tuples(int32s, st.one_of(st.none(), st.binary(max_size=300))), max_size=4)


@given(
    version=st.sampled_from(PRODUCE_VERSIONS),
    topics=st.lists(st.tuples(names, uuids, partitions), max_size=3),
    transactional_id=st.one_of(st.none(), names),
    acks=st.integers(-2, 2),
    timeout_ms=int32s,
)
def test_produce_requests_parse_as_encoded(
    version: int,
    topics: list[tuple[str, Uuid, list[tuple[int, bytes | None]]]],
    transactional_id: str | None,
    acks: int,
    timeout_ms: int,
) -> None:
    request = produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            produce.TopicProduceData(
                name=name,
                topic_id=topic_id,
                partition_data=[
                    produce.PartitionProduceData(index=index, records=records)
                    for index, records in entries
                ],
            )
            for name, topic_id, entries in topics
        ],
    )
    frame = bytearray(b"head" + encode(request, version))
    parsed = parse_produce(frame, 4, version)
    assert (parsed.transactional_id, parsed.acks, parsed.timeout_ms) == (
        transactional_id,
        acks,
        timeout_ms,
    )
    found = [
        (
            topic,
            [
                (index, None if start < 0 else bytes(frame[start:end]))
                for index, start, end in entries
            ],
        )
        for topic, entries in parsed.topics
    ]
    assert found == [
        (topic_id if version >= TOPIC_ID_FROM else name, entries)
        for name, topic_id, entries in topics
    ]
    for cut in range(4, len(frame)):
        with pytest.raises(DecodeError):
            parse_produce(frame[:cut], 4, version)


@given(version=st.sampled_from(PRODUCE_VERSIONS), noise=st.binary(max_size=100))
def test_noise_is_a_decode_error_or_a_request(version: int, noise: bytes) -> None:
    try:
        parse_produce(bytearray(noise), 0, version)
    except DecodeError:
        return


@given(
    version=st.sampled_from(PRODUCE_VERSIONS),
    topics=st.lists(
        st.tuples(
            names,
            uuids,
            st.lists(
                st.builds(
                    PartitionAnswer, int32s, st.sampled_from(ErrorCode), int64s, int64s, int64s
                ),
                max_size=3,
            ),
        ),
        max_size=3,
    ),
)
def test_produce_responses_equal_the_compiled_codec(
    version: int, topics: list[tuple[str, Uuid, list[PartitionAnswer]]]
) -> None:
    by_id = version >= TOPIC_ID_FROM
    response = produce.ProduceResponse(
        responses=[
            produce.TopicProduceResponse(
                name=name,
                topic_id=topic_id,
                partition_responses=[
                    produce.PartitionProduceResponse(
                        index=answer.partition,
                        error_code=answer.error,
                        base_offset=answer.base_offset,
                        log_append_time_ms=answer.log_append_time_ms,
                        log_start_offset=answer.log_start_offset,
                    )
                    for answer in answers
                ],
            )
            for name, topic_id, answers in topics
        ]
    )
    by_hand = encode_answers(
        version, [(topic_id if by_id else name, answers) for name, topic_id, answers in topics]
    )
    assert by_hand == encode(response, version)


@st.composite
def fetch_answers(draw: st.DrawFn) -> list[tuple[str, FetchAnswer]]:
    answers = []
    for number in range(draw(st.integers(0, 4))):
        records = draw(st.binary(max_size=200))
        aborted = draw(st.one_of(st.none(), st.lists(st.tuples(int64s, int64s), max_size=3)))
        answer = FetchAnswer(
            Uuid(bytes([number]) * 16),
            draw(int32s),
            draw(st.sampled_from(ErrorCode)),
            draw(int64s),
            draw(int64s),
            draw(int64s),
            aborted,
            [records[:7], memoryview(records)[7:]] if records else [],
            len(records),
            draw(int32s),
            draw(st.one_of(st.none(), st.tuples(st.integers(0, 99), int64s))),
            draw(st.one_of(st.none(), st.tuples(st.integers(0, 99), int32s))),
        )
        answers.append((f"topic-{number}" * draw(st.integers(1, 20)), answer))
    return answers


@given(
    version=st.sampled_from(FETCH_VERSIONS),
    error=st.sampled_from(ErrorCode),
    session_id=st.integers(0, 2**31 - 1),
    named=fetch_answers(),
    addresses=st.lists(
        st.builds(
            NodeAddress,
            int32s,
            st.text(max_size=200),
            int32s,
            st.one_of(st.none(), st.text(max_size=200)),
        ),
        max_size=3,
    ),
)
def test_fetch_responses_equal_the_compiled_codec(
    version: int,
    error: ErrorCode,
    session_id: int,
    named: list[tuple[str, FetchAnswer]],
    addresses: list[NodeAddress],
) -> None:
    if version < 7:
        error, session_id = ErrorCode.NONE, 0
    if version < 11:
        named = [(name, answer._replace(preferred_replica=-1)) for name, answer in named]
    if version < 12:
        named = [
            (name, answer._replace(diverging=None, current_leader=None)) for name, answer in named
        ]
    if version < 16:
        addresses = []
    response = fetch.FetchResponse(
        error_code=error,
        session_id=session_id,
        responses=[
            fetch.FetchableTopicResponse(
                topic=name,
                topic_id=Uuid(bytes(answer.topic)),  # type: ignore[arg-type]
                partitions=[
                    fetch.PartitionData(
                        partition_index=answer.partition,
                        error_code=answer.error,
                        high_watermark=answer.high_watermark,
                        last_stable_offset=answer.last_stable_offset,
                        log_start_offset=answer.log_start_offset,
                        aborted_transactions=None
                        if answer.aborted is None
                        else [
                            fetch.AbortedTransaction(producer_id=producer, first_offset=offset)
                            for producer, offset in answer.aborted
                        ],
                        preferred_read_replica=answer.preferred_replica,
                        diverging_epoch=fetch.FetchEpochEndOffset()
                        if answer.diverging is None
                        else fetch.FetchEpochEndOffset(
                            epoch=answer.diverging[0], end_offset=answer.diverging[1]
                        ),
                        current_leader=fetch.LeaderIdAndEpoch()
                        if answer.current_leader is None
                        else fetch.LeaderIdAndEpoch(
                            leader_id=answer.current_leader[0],
                            leader_epoch=answer.current_leader[1],
                        ),
                        records=b"".join(map(bytes, answer.parts)),  # type: ignore[arg-type]
                    )
                ],
            )
            for name, answer in named
        ],
        node_endpoints=[fetch.NodeEndpoint(**address._asdict()) for address in addresses],
    )
    by_id = version >= FETCH_TOPIC_ID_FROM
    answers = [answer if by_id else answer._replace(topic=name) for name, answer in named]
    by_hand = encode_fetch(version, error, session_id, answers, addresses)
    assert b"".join(map(bytes, by_hand)) == b"".join(encode_parts(response, version))  # type: ignore[arg-type]
