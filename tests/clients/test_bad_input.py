"""What no proper client sends: an error code or a closed connection, nothing stored, and everyone
else served."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from struct import pack, pack_into
from typing import Any

import pytest

from barnabas.base.checksum import crc32c
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.connections import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.credentials import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.records import Record, encode_batch
from support.raw_client import RawClient

HALF_SENT_CONNECTIONS = 300


@pytest.fixture
def raw(kafka: Any) -> Iterator[RawClient]:
    with RawClient(kafka.bootstrap_servers) as client:
        yield client


@pytest.fixture
def topic(raw: RawClient) -> str:
    name = f"bad-{uuid.uuid4().hex[:10]}"
    raw.create_topic(name)
    return name


def end_offset(raw: RawClient, topic: str) -> int:
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
        ],
    )
    response = raw.call(request, ListOffsetsResponse)
    return response.topics[0].partitions[0].offset


def good_batch(count: int = 3, codec: Codec = Codec.NONE, **options: Any) -> bytearray:
    now_ms = int(time.time() * 1000)
    records = [
        Record(offset=n, timestamp=now_ms + n, key=b"k%d" % n, value=b"v%d" % n)
        for n in range(count)
    ]
    return bytearray(encode_batch(records, codec=codec, **options))


def sealed(batch: bytearray) -> bytes:
    """The batch with a CRC that is right for what it now holds."""
    pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


GARBAGE_FRAMES: dict[str, bytes] = {
    "nothing": b"",
    "one byte": b"\x00",
    "unknown api": pack(">hhih", 999, 0, 1, -1),
    "negative api": pack(">hhih", -5, 0, 1, -1),
    "version too high": pack(">hhih", 3, 99, 1, -1),
    "negative version": pack(">hhih", 3, -1, 1, -1),
    "produce v2, which is advertised but gone": pack(">hhih", 0, 2, 1, -1),
    "client id longer than the frame": pack(">hhih", 3, 1, 1, 500) + b"abc",
    "client id of negative length": pack(">hhih", 3, 1, 1, -7),
    "client id that is not UTF-8": pack(">hhih", 3, 1, 1, 2) + b"\xff\xfe" + pack(">i", -1),
    "body cut short": pack(">hhih", 3, 1, 1, -1) + b"\x00\x00",
    "array longer than the frame": pack(">hhih", 3, 1, 1, -1) + pack(">i", 2**31 - 1),
    "http": b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
    "random": bytes(range(7, 250)) * 3,
}


@pytest.mark.parametrize("frame", GARBAGE_FRAMES.values(), ids=GARBAGE_FRAMES)
def test_a_malformed_frame_closes_its_connection_only(
    kafka: Any, raw: RawClient, frame: bytes
) -> None:
    with RawClient(kafka.bootstrap_servers) as bad:
        bad.send_frame(frame)
        assert bad.is_closed_by_peer()
    assert raw.topic_id("still-served-" + uuid.uuid4().hex[:8])


@pytest.mark.parametrize(
    "prefix", [pack(">i", -1), pack(">i", -(2**31)), pack(">i", 2**31 - 1), b"GET / HTTP"]
)
def test_a_length_outside_the_limit_closes_the_connection(kafka: Any, prefix: bytes) -> None:
    with RawClient(kafka.bootstrap_servers) as bad:
        bad.send_bytes(prefix)
        assert bad.is_closed_by_peer()


def test_bytes_after_a_body_are_not_looked_at(raw: RawClient) -> None:
    """librdkafka sends one too many with its Metadata requests."""
    raw.send_frame(encode_request(ApiKey.METADATA, 12, 3, "t", MetadataRequest(topics=[])) + b"xyz")
    assert raw.receive_frame()[:4] == pack(">i", 3)


def test_every_api_survives_a_body_of_noise(kafka: Any, raw: RawClient) -> None:
    advertised = raw.call(
        ApiVersionsRequest(client_software_name="t", client_software_version="1"),
        ApiVersionsResponse,
    )
    noise = bytes(range(256)) * 2
    for entry in advertised.api_keys:
        for version in {max(entry.min_version, APIS[entry.api_key].min_version), entry.max_version}:
            if entry.api_key == ApiKey.API_VERSIONS and version < 3:
                continue
            head = pack(">hhih", entry.api_key, version, 1, -1)
            for body in (b"\x00" + noise, noise, b"\xff" * 40):
                with RawClient(kafka.bootstrap_servers) as bad:
                    bad.send_frame(head + body)
                    bad.is_closed_by_peer()
    assert raw.topic_id("noise-" + uuid.uuid4().hex[:8])


def test_an_unknown_api_versions_version_is_answered(raw: RawClient) -> None:
    raw.send_frame(pack(">hhih", ApiKey.API_VERSIONS, 99, 77, -1) + b"whatever follows")
    frame = raw.receive_frame()
    assert frame[:4] == pack(">i", 77)
    response, _ = decode_at(ApiVersionsResponse, 0, frame, 4)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [entry.api_key for entry in response.api_keys] == [ApiKey.API_VERSIONS]


def test_what_is_advertised_is_what_kafka_serves(raw: RawClient) -> None:
    response = raw.call(
        ApiVersionsRequest(client_software_name="t", client_software_version="1"),
        ApiVersionsResponse,
    )
    assert response.error_code == ErrorCode.NONE
    for entry in response.api_keys:
        api = APIS[entry.api_key]
        stable = api.max_version - (1 if api.latest_version_unstable else 0)
        assert entry.max_version == stable
        assert entry.min_version == (0 if api.key == ApiKey.PRODUCE else api.min_version)


def test_a_client_name_that_is_no_word_is_refused(raw: RawClient) -> None:
    response = raw.call(
        ApiVersionsRequest(client_software_name="-no-", client_software_version="1"),
        ApiVersionsResponse,
    )
    assert response.error_code == ErrorCode.INVALID_REQUEST


def corrupt_crc(batch: bytearray) -> bytes:
    batch[-1] ^= 1
    return bytes(batch)


def magic(number: int) -> Callable[[bytearray], bytes]:
    def change(batch: bytearray) -> bytes:
        batch[16] = number
        return sealed(batch)

    return change


def patched(form: str, position: int, value: int) -> Callable[[bytearray], bytes]:
    def change(batch: bytearray) -> bytes:
        pack_into(form, batch, position, value)
        return sealed(batch)

    return change


def offsets_that_repeat(batch: bytearray) -> bytes:
    """The second record claims the offset of the first."""
    records = good_batch(1)[61:]
    twice = batch[:61] + records + records
    pack_into(">i", twice, 8, len(twice) - 12)
    pack_into(">i", twice, 23, 1)
    pack_into(">i", twice, 57, 2)
    return sealed(twice)


BAD_BATCHES: dict[str, tuple[Callable[[bytearray], bytes | None], set[ErrorCode]]] = {
    "corrupt crc": (corrupt_crc, {ErrorCode.CORRUPT_MESSAGE}),
    "magic 0": (magic(0), {ErrorCode.INVALID_RECORD}),
    "magic 1": (magic(1), {ErrorCode.INVALID_RECORD}),
    "magic 3": (magic(3), {ErrorCode.CORRUPT_MESSAGE}),
    "magic 127": (magic(127), {ErrorCode.CORRUPT_MESSAGE}),
    "cut short": (lambda b: bytes(b[:-3]), {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}),
    "header only": (lambda b: bytes(b[:61]), {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}),
    "less than a header": (
        lambda b: bytes(b[:30]),
        {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD},
    ),
    "nothing": (lambda b: b"", {ErrorCode.INVALID_RECORD}),
    "null": (lambda b: None, {ErrorCode.INVALID_RECORD}),
    "two batches": (lambda b: bytes(b + b), {ErrorCode.INVALID_RECORD}),
    "bytes after it": (
        lambda b: bytes(b + b"xyz"),
        {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE},
    ),
    "too many counted": (patched(">i", 57, 9), {ErrorCode.INVALID_RECORD}),
    "too few counted": (patched(">i", 57, 2), {ErrorCode.INVALID_RECORD}),
    "none counted": (patched(">i", 57, 0), {ErrorCode.INVALID_RECORD}),
    "negative count": (patched(">i", 57, -1), {ErrorCode.INVALID_RECORD}),
    "wrong last offset": (patched(">i", 23, 7), {ErrorCode.INVALID_RECORD}),
    "offsets that repeat": (offsets_that_repeat, {ErrorCode.INVALID_RECORD}),
    "negative length": (
        patched(">i", 8, -5),
        {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD},
    ),
    "length beyond the request": (
        patched(">i", 8, 1 << 30),
        {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD},
    ),
    "control batch": (patched(">h", 21, 0x20), {ErrorCode.INVALID_RECORD}),
    "unknown codec": (
        patched(">h", 21, 6),
        {ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.CORRUPT_MESSAGE},
    ),
    "not compressed as it says": (
        patched(">h", 21, int(Codec.LZ4)),
        {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD},
    ),
    "first record of a length that is not there": (
        patched(">b", 61, 127),
        {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE},
    ),
    "sequence without epoch": (
        lambda b: patched(">i", 53, -1)(bytearray(patched(">q", 43, 5)(b))),
        {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE},
    ),
}


@pytest.mark.parametrize(("spoil", "errors"), BAD_BATCHES.values(), ids=BAD_BATCHES)
@pytest.mark.parametrize("version", [3, 12])
def test_a_bad_batch_is_refused_and_not_stored(
    raw: RawClient,
    topic: str,
    spoil: Callable[[bytearray], bytes | None],
    errors: set[ErrorCode],
    version: int,
) -> None:
    raw.produce(topic, bytes(good_batch()))
    answer = raw.produce(topic, spoil(good_batch()), version=version)
    assert answer.error_code in errors
    assert answer.base_offset == -1
    assert end_offset(raw, topic) == 3
    assert raw.produce(topic, bytes(good_batch())).base_offset == 3


@pytest.mark.parametrize("version", range(3, 13))
def test_zstd_is_for_clients_of_version_7_on(raw: RawClient, topic: str, version: int) -> None:
    record = Record(offset=0, timestamp=int(time.time() * 1000), value=b"v" * 50)
    batch = bytes(encode_batch([record], codec=Codec.ZSTD))
    answer = raw.produce(topic, batch, version=version)
    is_taken = version >= 7
    expected = ErrorCode.NONE if is_taken else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert answer.error_code == expected
    assert end_offset(raw, topic) == is_taken


@pytest.mark.parametrize("version", [0, 1])
def test_sasl_on_a_plaintext_listener_is_out_of_place(raw: RawClient, version: int) -> None:
    shaken = raw.call(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, version)
    assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    asked = SaslAuthenticateRequest(auth_bytes=b"x")
    for step in (version, version + 1):
        answer = raw.call(asked, SaslAuthenticateResponse, step)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert answer.error_message is not None


def test_timestamps_out_of_range_are_refused(raw: RawClient, topic: str) -> None:
    late = Record(offset=0, timestamp=int(time.time() * 1000) + 7_200_000, value=b"v")
    answer = raw.produce(topic, bytes(encode_batch([late])))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert answer.record_errors[0].batch_index == 0
    assert end_offset(raw, topic) == 0


def test_a_batch_above_max_message_bytes_is_refused(raw: RawClient) -> None:
    topic = f"small-{uuid.uuid4().hex[:8]}"
    raw.create_topic(topic, {"max.message.bytes": "200"})
    big = Record(offset=0, timestamp=int(time.time() * 1000), value=b"x" * 400)
    answer = raw.produce(topic, bytes(encode_batch([big])))
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert raw.produce(topic, bytes(good_batch())).error_code == ErrorCode.NONE


def test_a_record_without_key_is_refused_on_a_compacted_topic(raw: RawClient) -> None:
    topic = f"compacted-{uuid.uuid4().hex[:8]}"
    raw.create_topic(topic, {"cleanup.policy": "compact"})
    now_ms = int(time.time() * 1000)
    records = [
        Record(offset=0, timestamp=now_ms, key=b"k", value=b"v"),
        Record(offset=1, timestamp=now_ms, value=b"no key"),
    ]
    for codec in (Codec.NONE, Codec.LZ4):
        answer = raw.produce(topic, bytes(encode_batch(records, codec=codec)))
        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in answer.record_errors] == [1]
    assert end_offset(raw, topic) == 0


def test_unknown_topics_partitions_and_acks(raw: RawClient, topic: str) -> None:
    batch = bytes(good_batch())
    unknown = raw.produce("no-such-topic", batch)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert raw.produce(topic, batch, acks=7).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert end_offset(raw, topic) == 0


def test_internal_topics_take_no_records_from_clients(raw: RawClient) -> None:
    raw.topic_id("__consumer_offsets")
    answer = raw.produce("__consumer_offsets", bytes(good_batch()))
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("partition", "offset", "error"),
    [
        (0, 99, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, -7, ErrorCode.OFFSET_OUT_OF_RANGE),
        (55, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (-1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_fetches_of_what_is_not_there(
    raw: RawClient, topic: str, partition: int, offset: int, error: ErrorCode
) -> None:
    raw.produce(topic, bytes(good_batch()))
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic_id=raw.topic_id(topic),
                partitions=[
                    FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=1000
                    )
                ],
            )
        ],
    )
    response = raw.call(request, FetchResponse)
    assert response.responses[0].partitions[0].error_code == error


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(-1, ErrorCode.NONE), (99, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_fetches_with_another_leader_epoch(
    raw: RawClient, topic: str, epoch: int, error: ErrorCode
) -> None:
    request = FetchRequest(
        topics=[
            FetchTopic(
                topic_id=raw.topic_id(topic),
                partitions=[
                    FetchPartition(
                        partition=0, current_leader_epoch=epoch, partition_max_bytes=1000
                    )
                ],
            )
        ],
    )
    response = raw.call(request, FetchResponse)
    assert response.responses[0].partitions[0].error_code == error


def test_unknown_fetch_sessions_are_refused(raw: RawClient) -> None:
    request = FetchRequest(session_id=12345, session_epoch=3)
    assert raw.call(request, FetchResponse).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_half_sent_frames_on_hundreds_of_connections_hold_nobody_up(
    kafka: Any, raw: RawClient, topic: str
) -> None:
    metadata = encode_request(ApiKey.METADATA, 12, 1, "half", MetadataRequest())
    frames = (
        pack(">i", 90_000_000) + b"\x00\x00\x00\x0c" + b"x" * 1000,
        pack(">i", len(metadata)) + metadata[:-1],
        b"\x00\x00",
    )
    held = [RawClient(kafka.bootstrap_servers) for _ in range(HALF_SENT_CONNECTIONS)]
    try:
        for number, client in enumerate(held):
            client.send_bytes(frames[number % len(frames)])
        assert raw.produce(topic, bytes(good_batch())).error_code == ErrorCode.NONE
        assert end_offset(raw, topic) == 3
    finally:
        for client in held:
            client.socket.close()


def test_requests_that_arrive_byte_by_byte_are_served(raw: RawClient, topic: str) -> None:
    request = encode_request(ApiKey.METADATA, 12, 9, "slow", MetadataRequest(topics=[]))
    for byte in pack(">i", len(request)) + request:
        raw.send_bytes(bytes([byte]))
    assert raw.receive_frame()[:4] == pack(">i", 9)


def test_a_transactional_batch_without_a_transactional_id_holds_nobody_up(
    raw: RawClient, topic: str
) -> None:
    records = [Record(timestamp=int(time.time() * 1000), key=b"k", value=b"v")]
    plain = bytes(encode_batch(records))
    endless = bytes(
        encode_batch(
            records, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
        )
    )
    expected = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert raw.produce(topic, endless).error_code == expected
    assert raw.produce(topic, plain).error_code == ErrorCode.NONE
    assert raw.produce(topic, endless).error_code == expected  # as a repeated request, too
    request = FetchRequest(
        isolation_level=1,
        max_wait_ms=0,
        topics=[
            FetchTopic(
                topic_id=raw.topic_id(topic),
                partitions=[FetchPartition(partition=0, partition_max_bytes=1000)],
            )
        ],
    )
    (answer,) = raw.call(request, FetchResponse).responses[0].partitions
    assert answer.last_stable_offset == answer.high_watermark == 1
