"""Importing a node loads no optional packages; its checksum is right for any buffer."""

import subprocess
import sys
from random import Random

from barnabas.base.checksum import crc32c

IMPORTED_AT_FIRST_USE = ("cramjam", "backports.zstd", "compression.zstd", "re2", "difflib")
NEVER_NEEDED = ("importlib.metadata", "argparse", "email")
SCRIPT = f"""
import sys
import barnabas.app.runner
found = [name for name in {IMPORTED_AT_FIRST_USE + NEVER_NEEDED} if name in sys.modules]
sys.exit(", ".join(found) or 0)
"""


def test_a_node_imports_nothing_large_that_it_may_not_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_checksum_is_castagnoli_s_of_any_buffer() -> None:
    random = Random(32)
    for size in (0, 1, 8, 61, 255, 256, 257, 1000, 70_000):
        frame = bytearray(random.randbytes(size + 3))
        view = memoryview(frame)[3:]
        expected = _bit_by_bit(view)
        assert crc32c(view) == crc32c(view.toreadonly()) == crc32c(bytes(view)) == expected
    assert crc32c(bytearray(b"123456789")) == 0xE3069283


def _bit_by_bit(data: memoryview) -> int:
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum ^= byte
        for _ in range(8):
            checksum = checksum >> 1 ^ (0x82F63B78 if checksum & 1 else 0)
    return checksum ^ 0xFFFFFFFF
