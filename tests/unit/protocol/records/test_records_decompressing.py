"""Records decompressed in pieces: the same bytes and refusals as at once, in little memory."""

import tracemalloc
import zlib
from collections.abc import Callable
from functools import partial

import cramjam
import lz4.frame
import pytest
import zstandard

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec, CorruptBatchError
from barnabas.protocol.records.compression import SNAPPY_JAVA_HEAD, compress, decompress
from barnabas.protocol.records.decompressing import (
    PACK_SIZE_BYTES,
    Budget,
    Packer,
    decompress_in_pieces,
    likely_size,
)

MEBIBYTE = 2**20
TEXT = b"".join(b"%d:%x," % (number, number * number) for number in range(60_000))


def in_pieces(codec: Codec, data: bytes, size_max: int = 64 * MEBIBYTE) -> bytes:
    out = bytearray()
    for piece in decompress_in_pieces(codec, memoryview(data), Budget(size_max)):
        out += piece if isinstance(piece, bytes) else piece()
    return bytes(out)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [0, 1, 1000, len(TEXT)])
def test_pieces_are_the_whole(codec: Codec, size: int) -> None:
    assert in_pieces(codec, compress(codec, TEXT[:size])) == TEXT[:size]


FOREIGN: dict[str, tuple[Codec, Callable[[], bytes]]] = {
    "gzip members": (
        Codec.GZIP,
        lambda: compress(Codec.GZIP, TEXT[:5000]) + compress(Codec.GZIP, TEXT[5000:]),
    ),
    "raw snappy": (Codec.SNAPPY, lambda: bytes(cramjam.snappy.compress_raw(TEXT))),
    "snappy streams": (
        Codec.SNAPPY,
        lambda: compress(Codec.SNAPPY, TEXT[:40_000]) + compress(Codec.SNAPPY, TEXT[40_000:]),
    ),
    "zstd frames": (
        Codec.ZSTD,
        lambda: compress(Codec.ZSTD, TEXT[:5000]) + compress(Codec.ZSTD, TEXT[5000:]),
    ),
    "zstd without a size": (
        Codec.ZSTD,
        lambda: zstandard.ZstdCompressor(write_content_size=False).compress(TEXT),
    ),
    **{
        f"lz4 {size} {content} {block} {store} {linked}": (
            Codec.LZ4,
            partial(
                lz4.frame.compress,
                TEXT,
                block_size=size,
                content_checksum=content,
                block_checksum=block,
                store_size=store,
                block_linked=linked,
            ),
        )
        for size in (4, 5, 6, 7)
        for content in (False, True)
        for block in (False, True)
        for store in (False, True)
        for linked in (False, True)
    },
}
"""By name its codec and how it is written: not before a test reads it, for each process that
collects tests would compress all of it."""


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_framings(name: str) -> None:
    codec, write = FOREIGN[name]
    assert in_pieces(codec, write()) == TEXT


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_damage_is_refused_as_at_once(codec: Codec) -> None:
    """Every cut, and each byte of the head and some others changed."""
    packed = compress(codec, TEXT[:3000])
    damaged = [packed[:size] for size in range(len(packed))]
    for place in (*range(24), *range(24, len(packed), 97)):
        changed = bytearray(packed)
        changed[place] ^= 0x55
        damaged.append(bytes(changed))
    for data in damaged:
        try:
            expected = decompress(codec, data)
        except CorruptBatchError:
            with pytest.raises(CorruptBatchError):
                in_pieces(codec, data)
        else:
            assert in_pieces(codec, data) == expected


def bomb(codec: Codec) -> bytes:
    """Decompresses to 64 MB."""
    if codec is Codec.GZIP:
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        return b"".join(packer.compress(bytes(MEBIBYTE)) for _ in range(64)) + packer.flush()
    if codec is Codec.SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(bytes(MEBIBYTE)))
        return SNAPPY_JAVA_HEAD + (len(block).to_bytes(4, "big") + block) * 64
    if codec is Codec.LZ4:
        packed = lz4.frame.compress(bytes(4 * MEBIBYTE), block_size=7, store_size=False)
        return packed[:7] + packed[7:-4] * 16 + bytes(4)
    block = ((128 * 1024) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return bytes.fromhex("28b52ffd0058") + block * 512 + b"\1\0\0"


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_a_bomb_takes_little_memory(codec: Codec) -> None:
    packed = bomb(codec)
    size = 0
    tracemalloc.start()
    try:
        for piece in decompress_in_pieces(codec, memoryview(packed), Budget(64 * MEBIBYTE)):
            size += len(piece if isinstance(piece, bytes) else piece())
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == 64 * MEBIBYTE
    assert peak_bytes < 16 * MEBIBYTE


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_a_bomb_stops_at_the_bound(codec: Codec) -> None:
    with pytest.raises(CorruptBatchError) as raised:
        in_pieces(codec, bomb(codec), 64 * MEBIBYTE - 1)
    assert raised.value.error is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", Codec)
def test_likely_size_is_near(codec: Codec) -> None:
    size = likely_size(codec, memoryview(compress(codec, TEXT)))
    assert len(TEXT) - 2 * 64 * 1024 <= size <= len(TEXT)


@pytest.mark.parametrize("codec", Codec)
def test_packing_in_pieces_is_one_stream(codec: Codec) -> None:
    data = TEXT + bytes(2 * PACK_SIZE_BYTES)
    packer = Packer(codec, None)
    starts = range(0, len(data), PACK_SIZE_BYTES)
    for start in starts:
        packer.pack(data[start : start + PACK_SIZE_BYTES], is_last=start == starts[-1])
    assert decompress(codec, bytes(packer.packed)) == data
    if codec is not Codec.ZSTD:  # there blocks end elsewhere
        assert packer.packed == compress(codec, data)
