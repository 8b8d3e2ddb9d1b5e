"""What record batches cost: `python -m bench.records` prints microseconds per 16 KB batch.

The claims in `barnabas.protocol.records` rest on it. Best of several runs, in processor time.
"""

import random
import time
import timeit
from collections.abc import Callable
from functools import partial

from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    Codec,
    check_crc,
    patch,
    read_header,
)
from barnabas.protocol.records.records import (
    Record,
    decode_records,
    encode_batch,
    validate_records,
)
from barnabas.protocol.records.structure import StructureCheck
from barnabas.protocol.records.walk import walk_records

BATCH_SIZE_BYTES = 16 * 1024
RUN_SECONDS = 0.02
RUNS = 7


def main() -> None:
    for name, records in _samples().items():
        data = encode_batch(records)
        header = read_header(data)
        took = _microseconds(partial(validate_records, data, 0, header, keys_required=False))
        print(
            f"validate {name:38} {took:8.1f} µs {took * 1000 / len(records):7.0f} ns a record "
            f"({len(records)} records, {len(data)} bytes)"
        )
    for name, count in (("of 70 to 130 bytes", 8_000), ("of 70 to 130 bytes", 40_000)):
        _validate_large(name, count)
    records = _samples()["of 100 bytes"]
    data = encode_batch(records)
    header = read_header(data)
    print(f"read_header {_microseconds(lambda: read_header(data)):43.2f} µs")
    print(f"check_crc {_microseconds(lambda: check_crc(data, 0, header)):45.2f} µs")
    print(f"patch {_microseconds(lambda: patch(data, 0, 5, 1)):49.2f} µs")
    for codec in Codec:
        batch = encode_batch(records, codec=codec)
        header = read_header(batch)
        for what, action in _codec_actions(records, batch, codec):
            print(f"{what} {codec.name.lower():8} {_microseconds(action):{45 - len(what)}.1f} µs")


def _validate_large(name: str, count: int) -> None:
    """The check of a batch of so many records, at once and as the broker does it, in steps."""
    chance = random.Random(1)
    records = [
        Record(timestamp=n // 40, value=bytes(chance.randint(70, 130))) for n in range(count)
    ]
    data = bytes(encode_batch(records)[HEADER_SIZE_BYTES:])

    def in_steps() -> None:
        check = StructureCheck(count, keys_required=False, size_max=len(data))
        for _ in check.feed(data):
            pass
        check.finish()

    for how, action in (
        ("at once", partial(walk_records, data, count, keys_required=False)),
        ("in steps", in_steps),
    ):
        took = _microseconds(action)
        print(
            f"validate {count:6} {name + ', ' + how:31} {took:8.1f} µs "
            f"{took * 1000 / count:7.0f} ns a record ({len(data)} bytes)"
        )


def _codec_actions(
    records: list[Record], batch: bytearray, codec: Codec
) -> list[tuple[str, Callable[[], object]]]:
    header = read_header(batch)
    return [
        ("encode", lambda: encode_batch(records, codec=codec)),
        ("decode", lambda: decode_records(batch)),
        ("validate", lambda: validate_records(batch, 0, header, keys_required=False)),
    ]


def _samples() -> dict[str, list[Record]]:
    chance = random.Random(1)

    def batch(make: Callable[[int], Record], size: int) -> list[Record]:
        return [make(n) for n in range(BATCH_SIZE_BYTES // (size + 8) + 1)]

    def text(size: int) -> bytes:
        return bytes(chance.choices(b"abcdefghij", k=size))

    def plain(n: int, size: int, key: bytes | None = None) -> Record:
        return Record(timestamp=n // 40, key=key, value=text(size))

    return {
        "of 100 bytes, alone": [plain(0, 100)],
        "of 1000 bytes": batch(lambda n: plain(n, 1000), 1000),
        "of 100 bytes": batch(lambda n: plain(n, 100), 100),
        "of 10 bytes": batch(lambda n: plain(n, 10), 10),
        "of 850 to 1150 bytes": batch(lambda n: plain(n, chance.randint(850, 1150)), 1000),
        "of 70 to 130 bytes": batch(lambda n: plain(n, chance.randint(70, 130)), 100),
        "of 70 to 130 bytes, 16-byte keys": batch(
            lambda n: plain(n, chance.randint(70, 130), text(16)), 116
        ),
        "of 70 to 130 bytes, keys of 4 to 40": batch(
            lambda n: plain(n, chance.randint(70, 130), text(chance.randint(4, 40))), 122
        ),
        "of 100 bytes, two headers": batch(
            lambda n: Record(
                timestamp=n // 40, value=text(100), headers=[("trace", text(16)), ("v", b"1")]
            ),
            128,
        ),
    }


def _microseconds(action: Callable[[], object]) -> float:
    timer = timeit.Timer(action, timer=time.process_time)
    number = max(1, int(RUN_SECONDS / max(timer.timeit(9) / 9, 1e-7)))
    return min(timer.repeat(RUNS, number)) / number * 1e6


if __name__ == "__main__":
    main()
