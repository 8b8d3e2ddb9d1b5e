"""The libraries for checksums and codecs beside those they were chosen over.

    python -m bench.libraries

Compares what is installed: `pip install crc32c google-crc32c awscrt anycrc lz4 zstandard` for all.
A checksum is taken of a `memoryview` of a `bytearray`, which is what a frame is here.
"""

import importlib
import random
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from barnabas.base.checksum import crc32c
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.compression import compress, decompress

SIZES_BYTES = (100, 1000, 16 * 1024, 1024 * 1024)
REPEATS = 7
CHUNK_SIZE_BYTES = 256 * 1024
Way = tuple[str, Callable[[], Any]]


def text(size_bytes: int) -> bytearray:
    """Records of some station, as JSON."""
    choose = random.Random(3)
    out = bytearray()
    while len(out) < size_bytes:
        station, energy = choose.randrange(9999), choose.random() * 50
        status = choose.choice(("charging", "free", "error"))
        out += f'{{"station":"s{station:04}","kwh":{energy:.3f},"status":"{status}"}}'.encode()
    return out[:size_bytes]


def checksums(view: memoryview) -> Iterator[Way]:
    """Ways to CRC-32C."""
    yield "ours (fastcrc)", lambda: crc32c(view)
    for module, name, is_copied in (
        ("crc32c", "crc32c", False),
        ("google_crc32c", "value", True),
        ("awscrt.checksums", "crc32c", False),
    ):
        function = _function(module, name)
        if function is not None and is_copied:
            yield f"{module}, of a copy", partial(_of_a_copy, function, view)
        elif function is not None:
            yield module, partial(function, view)
    model = _function("anycrc", "Model")
    if model is not None:
        calc = model("CRC32C").calc
        yield "anycrc", lambda: calc(view)


def codecs(view: memoryview) -> Iterator[Way]:
    """Ways to lz4 and zstd, there and back."""
    packed = {codec: compress(codec, view) for codec in (Codec.LZ4, Codec.ZSTD)}
    for codec, data in packed.items():
        name = codec.name.lower()
        yield f"{name}, ours", partial(compress, codec, view)
        yield f"un{name}, ours", partial(decompress, codec, data)
    try:
        frames: Any = importlib.import_module("lz4.frame")
        zstandard: Any = importlib.import_module("zstandard")
    except ImportError:
        return
    block_size = frames.BLOCKSIZE_MAX64KB
    yield (
        "lz4, package lz4",
        lambda: frames.compress(view, block_size=block_size, block_linked=False, store_size=False),
    )
    yield "unlz4, package lz4", lambda: _unlz4(frames, packed[Codec.LZ4])
    yield "zstd, package zstandard", lambda: zstandard.ZstdCompressor(level=3).compress(view)
    kept = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    yield "unzstd, package zstandard", lambda: kept.decompress(packed[Codec.ZSTD])


def _of_a_copy(function: Callable[[bytes], int], view: memoryview) -> int:
    return function(bytes(view))


def _unlz4(frames: Any, data: bytes) -> bytes:
    frame = frames.LZ4FrameDecompressor()
    chunks = [frame.decompress(data, max_length=CHUNK_SIZE_BYTES)]
    while not frame.eof:
        chunks.append(frame.decompress(b"", max_length=CHUNK_SIZE_BYTES))
    return b"".join(chunks)


def _function(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError:
        return None


def main() -> None:
    """Print a line for each size and way."""
    for size_bytes in SIZES_BYTES:
        view = memoryview(text(size_bytes))
        for name, way in (*checksums(view), *codecs(view)):
            once_s = min(timeit.repeat(way, number=3, repeat=3)) / 3
            count = max(3, int(0.02 / once_s))
            seconds = min(timeit.repeat(way, number=count, repeat=REPEATS)) / count
            speed = size_bytes / seconds / 1e6
            print(f"{size_bytes:>9,} B  {name:28} {seconds * 1e6:10,.2f} us {speed:9,.0f} MB/s")


if __name__ == "__main__":
    main()
