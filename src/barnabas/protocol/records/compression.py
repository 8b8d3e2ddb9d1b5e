"""The five codecs of record batches, with bounded output.

Compressed bytes are a peer's claim: whatever they unfold to stops at `size_max`, output is
taken in chunks, and a declared size is believed only where the codec could reach it from the
bytes at hand. Formats, as Kafka's clients write and read them:
gzip: one or more members. snappy: snappy-java's blocks (16-byte head, then length-prefixed raw
blocks), and on reading also one raw block, as librdkafka writes. lz4: a standard frame with
independent 64 KB blocks, no content checksum or size. zstd: one or more frames.
The libraries are imported at first use: most brokers never look into a compressed batch.
Source: Kafka's Compression classes; snappy-java's SnappyCodec; KIP-57 and KIP-110.
"""

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from barnabas.base.disk import Buffer
from barnabas.protocol.records.batch import Codec, CorruptBatchError

if TYPE_CHECKING:
    import zstandard

DECOMPRESSED_SIZE_BYTES_MAX: Final = 128 * 1024 * 1024
"""The records of one batch, unfolded. More is treated as a bomb and refused."""
CHUNK_SIZE_BYTES: Final = 256 * 1024
ZSTD_WINDOW_SIZE_BYTES_MAX: Final = DECOMPRESSED_SIZE_BYTES_MAX
"""Window of zstd's highest level, 22; the decoder reserves it, touching what it fills."""

ZSTD_SKIPPABLE_MAGIC: Final = 0x184D2A50
ZSTD_BLOCK_RLE: Final = 1
ZSTD_BLOCK_COMPRESSED: Final = 2
ZSTD_BLOCK_SIZE_BYTES_MAX: Final = 128 * 1024
ZSTD_ONE_SHOT_SIZE_BYTES_MAX: Final = 4 * ZSTD_BLOCK_SIZE_BYTES_MAX

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
    """Unfold the records of a batch.

    Raises CorruptBatchError for bytes that are not in the codec's format, end too early, or
    unfold to more than `size_max` bytes.
    """
    return _DECOMPRESSORS[codec](data, size_max)


def _store(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _load(data: Buffer, size_max: int) -> bytes:
    if len(data) > size_max:
        raise _too_large(size_max)
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
                    raise _too_large(size_max)
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
        return _snappy_block(view, size_max)
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
        part = _snappy_block(view[position : position + block_size], size_max - total)
        total += len(part)
        parts.append(part)
        position += block_size
    return b"".join(parts)


def _snappy_block(block: memoryview, size_max: int) -> bytes:
    import cramjam

    size = _snappy_declared_size(block)
    if size > size_max:
        raise _too_large(size_max)
    if size > len(block) * SNAPPY_EXPANSION_MAX:
        raise CorruptBatchError(f"snappy block of {len(block)} bytes cannot hold {size}")
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptBatchError(f"snappy: {error}") from error


def _snappy_declared_size(block: memoryview) -> int:
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise CorruptBatchError("snappy block has no size")


def _lz4_compress(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    if level is not None and not 1 <= level <= 17:
        raise ValueError(f"lz4 has no level {level}")
    compressed: bytes = lz4.frame.compress(
        data,
        # Level 9, Kafka's default, names the fast compressor there (KIP-390).
        compression_level=0 if level is None or level == 9 else max(level, 3),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _lz4_decompress(data: Buffer, size_max: int) -> bytes:
    import lz4.frame

    chunks = []
    total = 0
    rest: Buffer | None = data
    frame = lz4.frame.LZ4FrameDecompressor()
    try:
        while not frame.eof:
            chunk = frame.decompress(rest or b"", max_length=CHUNK_SIZE_BYTES)
            rest = None  # what was not consumed, the decompressor keeps
            total += len(chunk)
            if total > size_max:
                raise _too_large(size_max)
            chunks.append(chunk)
            if not chunk and frame.needs_input and not frame.eof:
                raise CorruptBatchError("lz4 frame ends too early")
    except (RuntimeError, EOFError, ValueError) as error:
        if isinstance(error, CorruptBatchError):
            raise
        raise CorruptBatchError(f"lz4: {error}") from error
    return b"".join(chunks)


def _zstd_compress(data: Buffer, level: int | None) -> bytes:
    import zstandard

    if level is not None and not -131072 <= level <= 22:
        raise ValueError(f"zstd has no level {level}")
    return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)


def _zstd_decompress(data: Buffer, size_max: int) -> bytes:
    """Frame by frame: the block headers tell where each ends and how much it may unfold to."""
    import zstandard

    view = memoryview(data)
    end = len(view)
    position = 0
    total = 0
    chunks: list[bytes] = []
    try:
        while position < end:
            frame_end, size_bound = _zstd_frame_extent(view, position, end)
            frame = view[position:frame_end]
            for chunk in _zstd_frame(frame, size_bound):
                total += len(chunk)
                if total > size_max:
                    raise _too_large(size_max)
                chunks.append(chunk)
            position = frame_end
    except (zstandard.ZstdError, MemoryError) as error:
        raise CorruptBatchError(f"zstd: {error}") from error
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _zstd_frame(frame: memoryview, size_bound: int) -> Iterator[bytes]:
    """The content of one whole frame; in chunks where it may be large."""
    if size_bound == 0:
        return
    if size_bound <= ZSTD_ONE_SHOT_SIZE_BYTES_MAX:
        yield _zstd_decompressor().decompress(frame, max_output_size=size_bound)
        return
    with _zstd_decompressor().stream_reader(frame) as reader:
        while chunk := reader.read(CHUNK_SIZE_BYTES):
            yield chunk


@cache
def _zstd_decompressor() -> "zstandard.ZstdDecompressor":
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_SIZE_BYTES_MAX)


def _zstd_frame_extent(view: memoryview, position: int, end: int) -> tuple[int, int]:
    """Where the frame at `position` ends, and a bound of the bytes it unfolds to.

    Source: RFC 8878, sections 3.1.1 and 3.1.2.
    """
    import zstandard

    magic = int.from_bytes(view[position : position + 4], "little")
    if magic & 0xFFFFFFF0 == ZSTD_SKIPPABLE_MAGIC:
        frame_end = position + 8 + int.from_bytes(view[position + 4 : position + 8], "little")
        if position + 8 > end or frame_end > end:
            raise CorruptBatchError("zstd frame ends too early")
        return frame_end, 0
    parameters = zstandard.get_frame_parameters(view[position:end])
    position += zstandard.frame_header_size(view[position:end])
    size_bound = 0
    is_last = 0
    while not is_last:
        if position + 3 > end:
            raise CorruptBatchError("zstd frame ends too early")
        block = view[position] | view[position + 1] << 8 | view[position + 2] << 16
        is_last = block & 1
        kind = block >> 1 & 3
        size = block >> 3
        position += 3 + (1 if kind == ZSTD_BLOCK_RLE else size)
        size_bound += ZSTD_BLOCK_SIZE_BYTES_MAX if kind == ZSTD_BLOCK_COMPRESSED else size
    if parameters.has_checksum:
        position += 4
    if position > end:
        raise CorruptBatchError("zstd frame ends too early")
    declared = parameters.content_size
    if declared != zstandard.CONTENTSIZE_UNKNOWN and declared > size_bound:
        raise CorruptBatchError(f"zstd frame declares {declared} bytes and holds {size_bound}")
    return position, size_bound


def _too_large(size_max: int) -> CorruptBatchError:
    return CorruptBatchError(f"compressed records unfold to more than {size_max} bytes")


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
