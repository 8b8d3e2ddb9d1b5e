"""The five codecs of record batches, with bounded output.

Compressed bytes are a peer's claim: decompression stops at `size_max`, output is
taken in chunks, and a declared size is believed only where the codec could reach it from the
bytes at hand. Formats, as Kafka's clients write and read them:
gzip: one or more members. snappy: snappy-java's blocks (16-byte head, then length-prefixed raw
blocks), and on reading also one raw block, as librdkafka writes. lz4: a standard frame with
independent 64 KB blocks, no content checksum or size. zstd: one or more frames.
The libraries are imported at first use: most brokers never look into a compressed batch.
Source: Kafka's Compression classes; snappy-java's SnappyCodec; KIP-57 and KIP-110.
"""

import sys
import zlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from barnabas.base.disk import Buffer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec, CorruptBatchError

DECOMPRESSED_SIZE_BYTES_MAX: Final = 128 * 1024 * 1024
"""The records of one batch, decompressed. More is treated as a bomb and refused."""
CHUNK_SIZE_BYTES: Final = 256 * 1024
ZSTD_WINDOW_LOG_MAX: Final = 27
"""Window of zstd's highest level, 22, is 2^27 bytes; the decoder touches what it fills."""

LZ4_HEAD: Final = bytes.fromhex("04224d18604082")
"""Magic; version 1, independent blocks, no checksums, no size; blocks of up to 64 KB."""
LZ4_END: Final = bytes(4)
LZ4_BLOCK_SIZE_BYTES: Final = 64 * 1024
LZ4_BLOCK_SIZES_BYTES: Final = {4: 2**16, 5: 2**18, 6: 2**20, 7: 2**22}
LZ4_BLOCK_IS_PLAIN: Final = 1 << 31
LZ4_HAS_DICTIONARY: Final = 1
LZ4_HAS_CHECKSUM: Final = 1 << 2
LZ4_HAS_SIZE: Final = 1 << 3
LZ4_HAS_BLOCK_CHECKSUMS: Final = 1 << 4
LZ4_EXPANSION_MAX: Final = 255
"""A byte of a match's length stands for 255 bytes at most."""
BUFFER_IS_FULL: Final = "failed to write whole buffer"
"""Rust's message for a full buffer."""

SNAPPY_JAVA_MAGIC: Final = b"\x82SNAPPY\x00"
SNAPPY_JAVA_HEAD: Final = SNAPPY_JAVA_MAGIC + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
SNAPPY_BLOCK_SIZE_BYTES: Final = 32 * 1024
SNAPPY_EXPANSION_MAX: Final = 22
"""A three-byte copy yields 64 bytes at most, so no raw block grows further than this."""


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress the records of a batch; `level` None is the codec's default in Kafka.

    Raises ValueError for a level that the codec does not have.
    """
    return _COMPRESSORS[codec](data, level)


def decompress(codec: Codec, data: Buffer, *, size_max: int = DECOMPRESSED_SIZE_BYTES_MAX) -> bytes:
    """Decompress the records of a batch.

    Raises CorruptBatchError for bytes that are not in the codec's format or end too early, and
    with MESSAGE_TOO_LARGE for those that decompress to more than `size_max` bytes.
    """
    return _DECOMPRESSORS[codec](data, size_max)


def _store(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _load(data: Buffer, size_max: int) -> bytes:
    if len(data) > size_max:
        raise decompressed_too_large(size_max)
    return bytes(data)


def _gzip_compress(data: Buffer, level: int | None) -> bytes:
    try:
        compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    except ValueError as error:
        raise ValueError(f"gzip has no level {level}") from error
    return compressor.compress(data) + compressor.flush()


def _gzip_decompress(data: Buffer, size_max: int) -> bytes:
    chunks = []
    total = 0
    rest: Buffer = data
    try:
        while rest:
            member = zlib.decompressobj(31)
            while not member.eof:
                chunk = member.decompress(rest, CHUNK_SIZE_BYTES)
                total += len(chunk)
                if total > size_max:
                    raise decompressed_too_large(size_max)
                chunks.append(chunk)
                rest = member.unconsumed_tail
                if not chunk and not rest and not member.eof:
                    raise CorruptBatchError("gzip data ends too early")
            rest = member.unused_data
    except zlib.error as error:
        raise CorruptBatchError(f"gzip: {error}") from error
    return b"".join(chunks)


def _snappy_compress(data: Buffer, level: int | None) -> bytes:
    import cramjam

    view = memoryview(data)
    parts = [SNAPPY_JAVA_HEAD]
    for start in range(0, len(view), SNAPPY_BLOCK_SIZE_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + SNAPPY_BLOCK_SIZE_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _snappy_decompress(data: Buffer, size_max: int) -> bytes:
    view = memoryview(data)
    if bytes(view[:8]) != SNAPPY_JAVA_MAGIC:
        return snappy_block(view, size_max)
    if len(view) < len(SNAPPY_JAVA_HEAD):
        raise CorruptBatchError("snappy head ends too early")
    position = len(SNAPPY_JAVA_HEAD)
    end = len(view)
    parts = []
    total = 0
    while position < end:
        if (
            bytes(view[position : position + 8]) == SNAPPY_JAVA_MAGIC
        ):  # streams may follow each other
            position += len(SNAPPY_JAVA_HEAD)
            continue
        block_size = int.from_bytes(view[position : position + 4], "big")
        position += 4
        if position + block_size > end:
            raise CorruptBatchError("snappy block ends too early")
        part = snappy_block(view[position : position + block_size], size_max - total)
        total += len(part)
        parts.append(part)
        position += block_size
    return b"".join(parts)


def snappy_block(block: memoryview, size_max: int) -> bytes:
    """Decompress one raw block. Raises CorruptBatchError."""
    import cramjam

    size = snappy_declared_size(block)
    if size > size_max:
        raise decompressed_too_large(size_max)
    if size > len(block) * SNAPPY_EXPANSION_MAX:
        raise CorruptBatchError(f"snappy block of {len(block)} bytes cannot hold {size}")
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptBatchError(f"snappy: {error}") from error


def snappy_declared_size(block: memoryview) -> int:
    """The size that a raw block says it decompresses to. Raises CorruptBatchError."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise CorruptBatchError("snappy block has no size")


def _lz4_compress(data: Buffer, level: int | None) -> bytes:
    import cramjam

    if level is not None and not 1 <= level <= 17:
        raise ValueError(f"lz4 has no level {level}")
    # Level 9, Kafka's default, names the fast compressor there (KIP-390).
    effort = None if level is None or level == 9 else max(level, 3)
    view = memoryview(data)
    parts: list[Buffer] = [LZ4_HEAD]
    for start in range(0, len(view), LZ4_BLOCK_SIZE_BYTES):
        plain = view[start : start + LZ4_BLOCK_SIZE_BYTES]
        block = bytes(
            cramjam.lz4.compress_block(
                plain,
                store_size=False,
                mode="fast" if effort is None else "high_compression",
                compression=effort,
            )
        )
        if len(block) < len(plain):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(plain) | LZ4_BLOCK_IS_PLAIN).to_bytes(4, "little"), plain)
    parts.append(LZ4_END)
    return b"".join(parts)


def _lz4_decompress(data: Buffer, size_max: int) -> bytes:
    import cramjam

    view = memoryview(data)
    frame_end, size_bound = lz4_frame_extent(view)
    decompressed = bytearray(min(size_bound, size_max))
    try:
        size = cramjam.lz4.decompress_into(view[:frame_end], decompressed)
    except cramjam.DecompressionError as error:
        if size_bound > size_max and BUFFER_IS_FULL in str(error):
            raise decompressed_too_large(size_max) from None
        raise CorruptBatchError(f"lz4: {error}") from error
    return bytes(memoryview(decompressed)[:size])


def lz4_frame_extent(view: memoryview) -> tuple[int, int]:
    """Return the frame's end and a bound of its decompressed size, by the lengths of its blocks.

    Source: LZ4 Frame Format Description 1.6.
    """
    end = len(view)
    if end < len(LZ4_HEAD) or bytes(view[:4]) != LZ4_HEAD[:4]:
        raise CorruptBatchError("no lz4 frame")
    flags = view[4]
    block_size_max = LZ4_BLOCK_SIZES_BYTES.get(view[5] >> 4 & 7)
    if block_size_max is None:
        raise CorruptBatchError("lz4 frame has no block size")
    checksum_size = 4 if flags & LZ4_HAS_BLOCK_CHECKSUMS else 0
    position = len(LZ4_HEAD)
    position += (8 if flags & LZ4_HAS_SIZE else 0) + (4 if flags & LZ4_HAS_DICTIONARY else 0)
    size_bound = 0
    while position + 4 <= end:
        field = int.from_bytes(view[position : position + 4], "little")
        position += 4
        if field == 0:
            position += 4 if flags & LZ4_HAS_CHECKSUM else 0
            break
        size = field & ~LZ4_BLOCK_IS_PLAIN
        decompresses_to = size if field & LZ4_BLOCK_IS_PLAIN else size * LZ4_EXPANSION_MAX
        size_bound += min(decompresses_to, block_size_max)
        position += size + checksum_size
    else:
        raise CorruptBatchError("lz4 frame ends too early")
    if position > end:
        raise CorruptBatchError("lz4 frame ends too early")
    return position, size_bound


def _zstd_compress(data: Buffer, level: int | None) -> bytes:
    zstd = load_zstd()
    if level is not None and not -131072 <= level <= 22:
        raise ValueError(f"zstd has no level {level}")
    compressed: bytes = zstd.compress(data, 3 if level is None else level)
    return compressed


def _zstd_decompress(data: Buffer, size_max: int) -> bytes:
    """Frame by frame, each cut out by its length: what is unused would be copied for each."""
    zstd = load_zstd()
    view = memoryview(data)
    position = 0
    total = 0
    chunks: list[bytes] = []
    try:
        while position < len(view):
            frame_size = zstd.get_frame_size(view[position:])
            frame: Buffer = view[position : position + frame_size]
            position += frame_size
            declared = zstd.get_frame_info(frame).decompressed_size  # None where it is not said
            if declared is not None and declared > size_max - total:
                raise decompressed_too_large(size_max)
            frame_end = None if declared is None else total + declared
            decompressor = zstd_decompressor()
            while not decompressor.eof:
                chunk = decompressor.decompress(frame, size_max - total + 1)
                frame = b""  # what was not consumed, the decompressor keeps
                total += len(chunk)
                if total > size_max:
                    raise decompressed_too_large(size_max)
                chunks.append(chunk)
                if not chunk and decompressor.needs_input and not decompressor.eof:
                    raise CorruptBatchError("zstd frame ends too early")
            if frame_end not in (None, total):
                raise CorruptBatchError("zstd frame does not hold what it declares")
    except (zstd.ZstdError, MemoryError) as error:
        raise CorruptBatchError(f"zstd: {error}") from error
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def zstd_decompressor() -> Any:
    """For one frame, with a bounded window."""
    zstd = load_zstd()
    options = {zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG_MAX}
    return zstd.ZstdDecompressor(options=options)


def load_zstd() -> ModuleType:
    """Python's own module, which comes with 3.14, or the same for those before it."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def decompressed_too_large(size_max: int) -> CorruptBatchError:
    """The refusal of a bomb. Java's producer splits a batch after it, and sends the parts."""
    return CorruptBatchError(
        f"compressed records decompress to more than {size_max} bytes", ErrorCode.MESSAGE_TOO_LARGE
    )


_COMPRESSORS: Final[dict[Codec, Callable[[Buffer, int | None], bytes]]] = {
    Codec.NONE: _store,
    Codec.GZIP: _gzip_compress,
    Codec.SNAPPY: _snappy_compress,
    Codec.LZ4: _lz4_compress,
    Codec.ZSTD: _zstd_compress,
}
_DECOMPRESSORS: Final[dict[Codec, Callable[[Buffer, int], bytes]]] = {
    Codec.NONE: _load,
    Codec.GZIP: _gzip_decompress,
    Codec.SNAPPY: _snappy_decompress,
    Codec.LZ4: _lz4_decompress,
    Codec.ZSTD: _zstd_decompress,
}
