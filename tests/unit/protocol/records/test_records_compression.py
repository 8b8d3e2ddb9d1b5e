"""The codecs: round trips, foreign framings, every cut, and bombs."""

import tracemalloc
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
import pytest
import zstandard

from barnabas.protocol.records import compression
from barnabas.protocol.records.batch import Codec, CorruptBatchError
from barnabas.protocol.records.compression import compress, decompress

TEXT = b"".join(b"reading %d from station %d;" % (n, n % 7) for n in range(4000))
SAMPLES = [b"", b"a", bytes(range(256)), TEXT, bytes(300_000)]
COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
MEBIBYTE = 2**20


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("data", SAMPLES, ids=lambda data: str(len(data)))
def test_round_trip(codec: Codec, data: bytes) -> None:
    packed = compress(codec, memoryview(data))
    assert decompress(codec, memoryview(packed)) == data
    assert decompress(codec, packed, size_max=len(data)) == data
    if data:
        with pytest.raises(CorruptBatchError, match="more than"):
            decompress(codec, packed, size_max=len(data) - 1)


FOREIGN: dict[str, tuple[Codec, Callable[[], bytes]]] = {
    "raw snappy, as librdkafka": (Codec.SNAPPY, lambda: bytes(cramjam.snappy.compress_raw(TEXT))),
    "two snappy streams": (
        Codec.SNAPPY,
        lambda: compress(Codec.SNAPPY, TEXT[:999]) + compress(Codec.SNAPPY, TEXT[999:]),
    ),
    "two gzip members": (
        Codec.GZIP,
        lambda: compress(Codec.GZIP, TEXT[:999]) + compress(Codec.GZIP, TEXT[999:]),
    ),
    "lz4 with linked blocks, size and checksum": (
        Codec.LZ4,
        lambda: lz4.frame.compress(TEXT, block_linked=True, store_size=True, content_checksum=True),
    ),
    "zstd without size, as the Java client": (
        Codec.ZSTD,
        lambda: zstandard.ZstdCompressor(write_content_size=False).compress(TEXT),
    ),
    "zstd with checksum": (
        Codec.ZSTD,
        lambda: zstandard.ZstdCompressor(write_checksum=True).compress(TEXT),
    ),
    "two zstd frames and one to skip": (
        Codec.ZSTD,
        lambda: (
            compress(Codec.ZSTD, TEXT[:999])
            + bytes.fromhex("532a4d1803000000aabbcc")
            + compress(Codec.ZSTD, TEXT[999:])
        ),
    ),
    "zstd at its highest level": (
        Codec.ZSTD,
        lambda: zstandard.ZstdCompressor(level=22, write_content_size=False).compress(TEXT),
    ),
}
"""By name its codec and how it is written: not before a test reads it, for each process that
collects tests would compress all of it."""


@pytest.mark.parametrize("name", FOREIGN)
def test_what_other_clients_write(name: str) -> None:
    codec, write = FOREIGN[name]
    assert decompress(codec, write()) == TEXT


def test_kafkas_lz4_frame_header() -> None:
    packed = compress(Codec.LZ4, TEXT)
    # Version 1, independent blocks, no checksums, no size; blocks of up to 64 KB.
    assert packed[:6] == bytes.fromhex("04224d186040")


def test_snappy_framing_of_snappy_java() -> None:
    packed = compress(Codec.SNAPPY, TEXT)
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    size = int.from_bytes(packed[16:20], "big")
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + size]) == 32 * 1024


@pytest.mark.parametrize("codec", COMPRESSED)
def test_every_cut_is_refused_or_a_prefix(codec: Codec) -> None:
    data = TEXT[:2000] + TEXT[:2000]
    packed = compress(codec, data)
    for size in range(len(packed)):
        try:
            unpacked = decompress(codec, packed[:size])
        except CorruptBatchError:
            continue
        # Snappy's blocks have no end mark, and no bytes at all are an empty stream.
        assert unpacked == b"", size


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("garbage", [b"\x00", b"\xff" * 64, bytes(64), b"{}" * 40])
def test_garbage_is_corrupt(codec: Codec, garbage: bytes) -> None:
    if codec is Codec.SNAPPY and not any(garbage):
        garbage += b"\x01"  # a lone zero is raw snappy of nothing
    with pytest.raises(CorruptBatchError):
        decompress(codec, garbage)


@pytest.fixture(scope="module")
def bombs() -> dict[str, tuple[Codec, bytes]]:
    """Made where they are tried: every process that collects tests would wait for them."""
    size = 256 * MEBIBYTE
    gzip = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(MEBIBYTE)
    gzip_bomb = b"".join(gzip.compress(zeros) for _ in range(256)) + gzip.flush()
    # One RLE block of 128 KB takes four bytes; window descriptor 0x58 is 2 MB.
    rle_block = ((128 * 1024) << 3 | 1 << 1).to_bytes(3, "little") + b"\x00"
    rle_bomb = bytes.fromhex("28b52ffd0058") + rle_block * 4096 + b"\x01\x00\x00"
    lz4_block = lz4.frame.compress(
        bytes(4 * MEBIBYTE), block_size=lz4.frame.BLOCKSIZE_MAX4MB, store_size=False
    )
    lz4_header, lz4_body = lz4_block[:7], lz4_block[7:-4]
    snappy_block = bytes(cramjam.snappy.compress_raw(bytes(8 * MEBIBYTE)))
    snappy_part = len(snappy_block).to_bytes(4, "big") + snappy_block
    return {
        "gzip": (Codec.GZIP, gzip_bomb),
        "snappy": (Codec.SNAPPY, compression.SNAPPY_JAVA_HEAD + snappy_part * 32),
        "raw snappy that claims 4 GB": (Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(100)),
        "snappy block that claims 4 GB": (
            Codec.SNAPPY,
            compression.SNAPPY_JAVA_HEAD + b"\xff\xff\xff\xff" + bytes(100),
        ),
        "lz4": (Codec.LZ4, lz4_header + lz4_body * (size // (4 * MEBIBYTE)) + bytes(4)),
        "zstd": (Codec.ZSTD, rle_bomb),
        "zstd that claims 2^60 bytes": (
            Codec.ZSTD,
            bytes.fromhex("28b52ffdc058") + (2**60).to_bytes(8, "little") + b"\x01\x00\x00",
        ),
        "zstd with a window of 1 TB": (
            Codec.ZSTD,
            bytes.fromhex("28b52ffd00f0") + rle_block * 64 + b"\x01\x00\x00",
        ),
    }


BOMBS = (
    *("gzip", "snappy", "raw snappy that claims 4 GB", "snappy block that claims 4 GB"),
    *("lz4", "zstd", "zstd that claims 2^60 bytes", "zstd with a window of 1 TB"),
)


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_stops_at_the_bound(name: str, bombs: dict[str, tuple[Codec, bytes]]) -> None:
    assert set(bombs) == set(BOMBS)
    codec, packed = bombs[name]
    size_max = 4 * MEBIBYTE
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatchError):
            decompress(codec, packed, size_max=size_max)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4 * size_max + len(packed)


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, 10), (Codec.LZ4, 0), (Codec.LZ4, 18), (Codec.ZSTD, 23), (Codec.ZSTD, -131073)],
)
def test_levels_that_do_not_exist(codec: Codec, level: int) -> None:
    with pytest.raises(ValueError, match="no level"):
        compress(codec, b"data", level)


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, 1), (Codec.GZIP, 9), (Codec.LZ4, 1), (Codec.LZ4, 17), (Codec.ZSTD, -5)],
)
def test_levels(codec: Codec, level: int) -> None:
    assert decompress(codec, compress(codec, TEXT, level)) == TEXT
