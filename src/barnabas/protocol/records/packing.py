"""Records, compressed piece by piece: the counterpart of `decompressing.py`."""

import zlib
from typing import Any, Final

from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.compression import (
    LZ4_END,
    LZ4_HEAD,
    SNAPPY_JAVA_HEAD,
    compress,
    load_zstd,
)

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
