"""Produce requests that repeat themselves.

A producer with one partition to write to sends the same bytes again and again, but for the
correlation id, the records and their length. What was learnt from one such request (header,
names, acks, where the partition is, what the answer begins with) holds for the next whose bytes
between correlation id and records are equal, so these are compared instead of parsed: a third
of what a request of one record costs. Any other request takes the general path.

`python -m bench.request_cost` shows the gain.
"""

from struct import Struct

from barnabas.base.ids import Uuid
from barnabas.node.broker.produce.codec import FLEXIBLE_FROM, ParsedProduce
from barnabas.node.replication.partition import Partition
from barnabas.protocol.frames import CORRELATION_END
from barnabas.protocol.records.batch import NO_TIMESTAMP
from barnabas.protocol.varint import read_unsigned_varint, write_unsigned_varint

NO_TAGS = b"\0\0\0"
"""After the records: the partition, the topic and the request have no tagged fields."""
SHAPES_MAX = 32
"""Remembered per connection: as many partitions as a producer may write to in turn."""
TAIL = b"\1" + bytes(8)
"""Of the answer: no record errors, no message, no tags, no throttling, no tags."""


def may_be_repeated(version: int, request: ParsedProduce) -> bool:
    """Whether a request is worth remembering: it is answered, and has records for one partition."""
    return (
        version >= FLEXIBLE_FROM
        and request.acks != 0
        and len(request.topics) == 1
        and len(request.topics[0].partitions) == 1
    )


class Shape:
    """The common state of requests with the same beginning."""

    __slots__ = (
        "_head",
        "_pack",
        "_size_bytes",
        "acks",
        "generation",
        "index",
        "is_transactional",
        "partition",
        "prefix",
        "same_end",
        "same_prefix",
        "same_start",
        "timeout_ms",
        "topic",
    )

    def __init__(
        self, request_prefix: bytes, request: ParsedProduce, partition: Partition, generation: int
    ) -> None:
        self.generation = generation
        """Of the ACLs with which it was allowed."""
        self.prefix = request_prefix
        """The request between correlation id and records."""
        self.same_prefix = b""
        """`prefix` and the records' length, of the last request."""
        self.same_start = self.same_end = 0
        """The positions of its records."""
        (produced,) = request.topics
        self.topic: str | Uuid = produced.topic
        self.index = produced.partitions[0].partition
        self.is_transactional = request.transactional_id is not None
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.partition = partition
        prefix = bytearray(b"\x02")
        if isinstance(self.topic, str):
            name = self.topic.encode()
            write_unsigned_varint(prefix, len(name) + 1)
            prefix += name
        else:
            prefix += self.topic
        prefix += b"\x02"
        head = Struct(">B").pack(0) + prefix + Struct(">ih").pack(self.index, 0)
        response = Struct(f">i4s{len(head)}sqqq{len(TAIL)}s")
        self._pack = response.pack
        self._size_bytes = response.size - 4
        self._head = head

    def respond(
        self, frame: bytearray, first_offset: int, log_append_time_ms: int = NO_TIMESTAMP
    ) -> bytes:
        """The whole frame of the answer to `frame`, which was appended without errors."""
        return self._pack(
            self._size_bytes,
            frame[4:CORRELATION_END],
            self._head,
            first_offset,
            log_append_time_ms,
            self.partition.log.log_start_offset,
            TAIL,
        )


class ProduceShapes:
    """The beginnings of one connection's latest requests."""

    __slots__ = ("_by_prefix", "_head", "_last", "_records_at")

    def __init__(self) -> None:
        self._by_prefix: dict[bytes, Shape] = {}
        self._last: Shape | None = None
        self._head = b""
        self._records_at = 0

    def learn(
        self,
        frame: bytearray,
        version: int,
        request: ParsedProduce,
        partition: Partition,
        generation: int = 0,
    ) -> None:
        """Remember a request whose records were appended to `partition`, if it may be repeated.

        `generation` is that of the ACLs with which it is allowed.
        """
        if not may_be_repeated(version, request):
            return
        entry = request.topics[0].partitions[0]
        length = bytearray()
        write_unsigned_varint(length, entry.end - entry.start + 1)
        records_at = entry.start - len(length)
        head = bytes(frame[:4])
        if (
            head != self._head
            or records_at != self._records_at
            or len(self._by_prefix) >= SHAPES_MAX
        ):
            self._by_prefix.clear()
            self._last = None
            self._head = head
            self._records_at = records_at
        prefix = bytes(frame[CORRELATION_END:records_at])
        self._by_prefix[prefix] = self._last = Shape(prefix, request, partition, generation)

    def find(self, frame: bytearray) -> tuple[Shape, int, int] | None:
        """The shape of `frame`, and where its records begin and end; None: parse it.

        Raises DecodeError for a records length that is malformed.
        """
        if not frame.startswith(self._head):
            return None
        at = self._records_at
        shape = self._last
        if (
            shape is not None
            and shape.same_end + 3 == len(frame)
            and frame.startswith(shape.same_prefix, CORRELATION_END)
            and frame.endswith(NO_TAGS)
        ):
            return shape, shape.same_start, shape.same_end  # nearly always of the same size, too
        if shape is None or not frame.startswith(shape.prefix, CORRELATION_END):
            shape = self._by_prefix.get(bytes(frame[CORRELATION_END:at]))
            if shape is None:
                return None
            self._last = shape
        length, start = read_unsigned_varint(frame, at)
        end = start + length - 1
        if length <= 1 or end + 3 != len(frame) or not frame.endswith(NO_TAGS):
            return None
        shape.same_prefix = bytes(frame[CORRELATION_END:start])
        shape.same_start = start
        shape.same_end = end
        return shape, start, end
