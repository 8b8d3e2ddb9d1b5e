"""Records, decompressed and compressed piece by piece.

A batch of a few kilobytes may decompress to DECOMPRESSED_SIZE_BYTES_MAX. Reading it in pieces takes
memory for a piece and the codec's window, and can pause between any two. A piece has some 32 KB,
or is empty, so that no step takes long. A block that cannot be cut comes as a function that
returns the piece: it runs in C without the interpreter lock, and so fits a thread. Formats and
bounds are those of `compression.py`.
"""

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from barnabas.protocol.records.batch import Codec, CorruptBatchError
from barnabas.protocol.records.compression import (
    LZ4_BLOCK_IS_PLAIN,
    LZ4_BLOCK_SIZES_BYTES,
    LZ4_END,
    LZ4_EXPANSION_MAX,
    LZ4_HAS_BLOCK_CHECKSUMS,
    LZ4_HAS_SIZE,
    LZ4_HEAD,
    SNAPPY_JAVA_HEAD,
    SNAPPY_JAVA_MAGIC,
    compress,
    decompress,
    decompressed_too_large,
    load_zstd,
    snappy_block,
    snappy_declared_size,
    zstd_decompressor,
)

PIECE_SIZE_BYTES: Final = 32 * 1024
ASIDE_SIZE_BYTES_MIN: Final = 256 * 1024
"""A block that may decompress to as much is a function: it takes longer than a step may."""
GZIP_SIZE_BYTES: Final = 4
"""The last bytes of a gzip member: its size decompressed."""
BLOCKS_FEW: Final = 64
MANY_BLOCKS: Final = 2**31
"""The likely size of what has more blocks: to look at each would take long."""
LZ4_FLAGS: Final = 0x60
"""Version 1, independent blocks."""
LZ4_BLOCK_SIZE_MASK: Final = 0x70

Aside = Callable[[], bytes]
"""Returns a piece. It takes long, and runs on any thread."""
Pieces = Iterator[bytes | Aside]


class Budget:
    """The number of bytes that may still be decompressed."""

    __slots__ = ("_size_max_bytes", "left_bytes")

    def __init__(self, size_max_bytes: int) -> None:
        self._size_max_bytes = self.left_bytes = size_max_bytes

    def take(self, size_bytes: int) -> None:
        """Raises CorruptBatchError, MESSAGE_TOO_LARGE, if there are not that many left."""
        self.left_bytes -= size_bytes
        if self.left_bytes < 0:
            raise decompressed_too_large(self._size_max_bytes)

    def expect(self, size_bytes: int) -> None:
        """As `take`, for bytes that will be taken later."""
        if size_bytes > self.left_bytes:
            raise decompressed_too_large(self._size_max_bytes)


def decompress_in_pieces(codec: Codec, data: memoryview, budget: Budget) -> Pieces:
    """The records of a batch; joined, the pieces are what `decompress` returns.

    Raises CorruptBatchError as `decompress` does, but not before the bad place is reached.
    """
    return _DECOMPRESS[codec](data, budget)


def likely_size(codec: Codec, data: memoryview) -> int:
    """Guess the decompressed size of `data` in bytes without decompressing it; 0 if unknown.

    It is what `data` says of itself, true or not.
    """
    try:
        return _LIKELY_SIZES[codec](data)
    except (CorruptBatchError, ValueError):
        return 0


def _load(data: memoryview, budget: Budget) -> Pieces:
    budget.take(len(data))
    for start in range(0, len(data), PIECE_SIZE_BYTES):
        yield bytes(data[start : start + PIECE_SIZE_BYTES])


def _gzip(data: memoryview, budget: Budget) -> Pieces:
    """The input in pieces too: zlib copies what it has not consumed at each call."""
    position, end = 0, len(data)
    rest = b""
    try:
        while position < end or rest:
            member = zlib.decompressobj(31)
            while not member.eof:
                if not rest:
                    rest = bytes(data[position : position + PIECE_SIZE_BYTES])
                    position += len(rest)
                is_over = not rest
                piece = member.decompress(rest, PIECE_SIZE_BYTES)
                rest = member.unconsumed_tail
                if is_over and not piece and not member.eof:
                    raise CorruptBatchError("gzip data ends too early")
                budget.take(len(piece))
                yield piece
            rest = member.unused_data
    except zlib.error as error:
        raise CorruptBatchError(f"gzip: {error}") from error


def _gzip_size(data: memoryview) -> int:
    return int.from_bytes(data[-GZIP_SIZE_BYTES:], "little")


def _snappy(data: memoryview, budget: Budget) -> Pieces:
    for block in _snappy_blocks(data):
        size = snappy_declared_size(block)
        budget.take(size)
        if size < ASIDE_SIZE_BYTES_MIN:
            yield snappy_block(block, size)
        else:
            yield partial(snappy_block, block, size)


def _snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    if bytes(data[:8]) != SNAPPY_JAVA_MAGIC:
        yield data
        return
    position, end = len(SNAPPY_JAVA_HEAD), len(data)
    if position > end:
        raise CorruptBatchError("snappy head ends too early")
    while position < end:
        if bytes(data[position : position + 8]) == SNAPPY_JAVA_MAGIC:
            position += len(SNAPPY_JAVA_HEAD)
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if position + size > end:
            raise CorruptBatchError("snappy block ends too early")
        yield data[position : position + size]
        position += size


def _snappy_size(data: memoryview) -> int:
    size = 0
    for number, block in enumerate(_snappy_blocks(data)):
        if number == BLOCKS_FEW:
            return MANY_BLOCKS
        size += snappy_declared_size(block)
    return size


def _lz4(data: memoryview, budget: Budget) -> Pieces:
    """Each block as a separate frame, if no block needs more than its own bytes."""
    end = len(data)
    if end < len(LZ4_HEAD) + len(LZ4_END) or bytes(data[:4]) != LZ4_HEAD[:4]:
        raise CorruptBatchError("no lz4 frame")
    flags, block_size = data[4], data[5]
    position = len(LZ4_HEAD) + (8 if flags & LZ4_HAS_SIZE else 0)
    if (
        flags & ~(LZ4_HAS_SIZE | LZ4_HAS_BLOCK_CHECKSUMS) != LZ4_FLAGS
        or block_size & ~LZ4_BLOCK_SIZE_MASK
        or block_size >> 4 not in LZ4_BLOCK_SIZES_BYTES
        or bytes(data[4:position]) != _lz4_described(bytes(data[4 : position - 1]))
    ):
        yield partial(_lz4_whole, data, budget)
        return
    declared = int.from_bytes(data[6 : position - 1], "little") if flags & LZ4_HAS_SIZE else 0
    budget.expect(declared)  # 0 is for unknown
    block_size_max = LZ4_BLOCK_SIZES_BYTES[block_size >> 4]
    checksum_size = 4 if flags & LZ4_HAS_BLOCK_CHECKSUMS else 0
    head = LZ4_HEAD[:4] + _lz4_described(bytes((flags & ~LZ4_HAS_SIZE, block_size)))
    left_before = budget.left_bytes
    while True:
        next_position = position + 4
        if next_position > end:
            raise CorruptBatchError("lz4 frame ends too early")
        field = int.from_bytes(data[position:next_position], "little")
        if field == 0:
            break
        size = field & ~LZ4_BLOCK_IS_PLAIN
        next_position += size + checksum_size
        if next_position > end:
            raise CorruptBatchError("lz4 frame ends too early")
        frame = head + bytes(data[position:next_position]) + LZ4_END
        position = next_position
        if min(size * LZ4_EXPANSION_MAX, block_size_max) < ASIDE_SIZE_BYTES_MIN:
            yield _lz4_block(frame, budget)
        else:
            yield partial(_lz4_block, frame, budget)
    if declared and left_before - budget.left_bytes != declared:
        raise CorruptBatchError("lz4 frame does not hold what it declares")


def _lz4_whole(data: memoryview, budget: Budget) -> bytes:
    decompressed = decompress(Codec.LZ4, data, size_max=budget.left_bytes)
    budget.take(len(decompressed))
    return decompressed


def _lz4_block(frame: bytes, budget: Budget) -> bytes:
    block = decompress(Codec.LZ4, frame)
    budget.take(len(block))
    return block


def _lz4_size(data: memoryview) -> int:
    """Blocks are mostly full, but the last."""
    if len(data) < len(LZ4_HEAD):
        return 0
    block_size = LZ4_BLOCK_SIZES_BYTES.get(data[5] >> 4 & 7, 0)
    position, end = len(LZ4_HEAD) + (8 if data[4] & LZ4_HAS_SIZE else 0), len(data)
    blocks = 0
    while position < end and blocks <= BLOCKS_FEW:
        position += 4 + (int.from_bytes(data[position : position + 4], "little") & 0x7FFFFFFF)
        blocks += 1
    return MANY_BLOCKS if blocks > BLOCKS_FEW else max(blocks - 2, 0) * block_size


def _lz4_described(fields: bytes) -> bytes:
    """A frame's descriptor with its checksum: the second byte of xxHash-32, of up to 15 bytes."""
    accumulator = 374761393 + len(fields)
    whole = len(fields) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(fields[at : at + 4], "little")
        accumulator = _rotated(accumulator + word * 3266489917, 17) * 668265263
    for byte in fields[whole:]:
        accumulator = _rotated(accumulator + byte * 374761393, 11) * 2654435761
    accumulator &= 0xFFFFFFFF
    accumulator = (accumulator ^ accumulator >> 15) * 2246822519 & 0xFFFFFFFF
    accumulator = (accumulator ^ accumulator >> 13) * 3266489917 & 0xFFFFFFFF
    return fields + bytes(((accumulator ^ accumulator >> 16) >> 8 & 0xFF,))


def _rotated(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> 32 - bits) & 0xFFFFFFFF


def _zstd(data: memoryview, budget: Budget) -> Pieces:
    zstd = load_zstd()
    position = 0
    try:
        while position < len(data):
            frame_size = zstd.get_frame_size(data[position:])
            frame: memoryview | bytes = data[position : position + frame_size]
            position += frame_size
            declared = zstd.get_frame_info(frame).decompressed_size
            if declared is not None:
                budget.expect(declared)
            left_before = budget.left_bytes
            decompressor = zstd_decompressor()
            while not decompressor.eof:
                piece = decompressor.decompress(frame, PIECE_SIZE_BYTES)
                frame = b""  # the decompressor keeps what it has not consumed
                budget.take(len(piece))
                if not piece and decompressor.needs_input and not decompressor.eof:
                    raise CorruptBatchError("zstd frame ends too early")
                yield piece
            if declared is not None and left_before - budget.left_bytes != declared:
                raise CorruptBatchError("zstd frame does not hold what it declares")
    except (zstd.ZstdError, MemoryError) as error:
        raise CorruptBatchError(f"zstd: {error}") from error


def _zstd_size(data: memoryview) -> int:
    zstd = load_zstd()
    try:
        if zstd.get_frame_size(data) != len(data):
            return MANY_BLOCKS  # several frames
        return zstd.get_frame_info(data).decompressed_size or 0
    except zstd.ZstdError:
        return 0


_DECOMPRESS: Final[dict[Codec, Callable[[memoryview, Budget], Pieces]]] = {
    Codec.NONE: _load,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_LIKELY_SIZES: Final[dict[Codec, Callable[[memoryview], int]]] = {
    Codec.NONE: len,
    Codec.GZIP: _gzip_size,
    Codec.SNAPPY: _snappy_size,
    Codec.LZ4: _lz4_size,
    Codec.ZSTD: _zstd_size,
}


# -- the counterpart: records, compressed piece by piece


PACK_SIZE_BYTES: Final = 256 * 1024
"""To be given at once: a multiple of the blocks of snappy and lz4."""


class Packer:
    """Compresses one batch's records; `pack` them all, then take what `packed` holds.

    Every piece but the last has PACK_SIZE_BYTES. The result is one stream or frame, as clients
    expect.
    """

    __slots__ = ("_codec", "_compressor", "_level", "packed")

    def __init__(self, codec: Codec, level: int | None) -> None:
        self._codec = codec
        self._level = level
        self.packed = bytearray()
        self._compressor: Any = None
        if codec is Codec.GZIP:
            self._compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
        elif codec is Codec.ZSTD:
            self._compressor = load_zstd().ZstdCompressor(3 if level is None else level)
        elif codec is Codec.SNAPPY:
            self.packed += SNAPPY_JAVA_HEAD
        elif codec is Codec.LZ4:
            self.packed += LZ4_HEAD

    def pack(self, piece: bytes, *, is_last: bool) -> bytes:
        """Compress on, for long, on any thread; returns nothing."""
        packed = self.packed
        if self._compressor is not None:
            packed += self._compressor.compress(piece)
            if is_last:
                packed += self._compressor.flush()
        elif self._codec is Codec.SNAPPY:
            packed += compress(Codec.SNAPPY, piece)[len(SNAPPY_JAVA_HEAD) :]
        elif self._codec is Codec.LZ4:
            packed += compress(Codec.LZ4, piece, self._level)[len(LZ4_HEAD) : -len(LZ4_END)]
            if is_last:
                packed += LZ4_END
        else:
            packed += piece
        return b""
