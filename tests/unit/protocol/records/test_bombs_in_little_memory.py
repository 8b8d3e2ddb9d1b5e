"""Batches that decompress to gigabytes are refused within memory that a node has to spare."""

import json
import subprocess
import sys

SCRIPT = """
import json, resource, sys, zlib
import cramjam
from barnabas.protocol.records.batch import Codec, HEADER, read_header, set_crc
from barnabas.protocol.records.compression import SNAPPY_JAVA_HEAD, compress, decompress
from barnabas.protocol.records.records import validate_records

MEBIBYTE = 2**20

def gzip():
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return (packer.compress(bytes(8 * MEBIBYTE)) + packer.flush()) * 64

def snappy():
    block = bytes(cramjam.snappy.compress_raw(bytes(8 * MEBIBYTE)))
    return SNAPPY_JAVA_HEAD + (len(block).to_bytes(4, "big") + block) * 64

def lz4():
    import lz4.frame
    size = lz4.frame.BLOCKSIZE_MAX4MB
    packed = lz4.frame.compress(bytes(4 * MEBIBYTE), block_size=size, store_size=False)
    return packed[:7] + packed[7:-4] * 128 + bytes(4)

def zstd():
    block = ((128 * 1024) << 3 | 1 << 1).to_bytes(3, "little") + b"\\0"
    return bytes.fromhex("28b52ffd0058") + block * 65536 + b"\\1\\0\\0"

for codec in Codec:
    decompress(codec, compress(codec, b"x"))  # the libraries are there
bombs = {Codec.GZIP: gzip(), Codec.SNAPPY: snappy(), Codec.LZ4: lz4(), Codec.ZSTD: zstd()}
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
room = 320 * MEBIBYTE
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
answers = {}
for codec, body in bombs.items():
    batch = bytearray(HEADER.size) + body
    HEADER.pack_into(batch, 0, 0, len(batch) - 12, 0, 2, 0, codec, 0, 0, 0, -1, -1, -1, 1)
    set_crc(batch, 0)
    answers[codec.name] = validate_records(batch, 0, read_header(batch), keys_required=False).name
json.dump(answers, sys.stdout)
"""


def test_no_bomb_takes_more_than_its_bound() -> None:
    """Each would decompress to half a gigabyte or more; a process with 320 MB survives them all."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys(
        ("GZIP", "SNAPPY", "LZ4", "ZSTD"), "MESSAGE_TOO_LARGE"
    )
