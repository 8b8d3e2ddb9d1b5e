"""What a node has in memory by being imported, and what it does not pay for."""

import subprocess
import sys
from random import Random

import crc32c as package

from barnabas.base.checksum import crc32c

IMPORTED_AT_FIRST_USE = ("cramjam", "lz4", "zstandard", "re2", "difflib")
NEVER_NEEDED = ("crc32c", "importlib.metadata", "argparse", "email")
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


def test_the_checksum_is_the_package_s() -> None:
    random = Random(32)
    for size in (0, 1, 8, 61, 1000, 70_000):
        data = random.randbytes(size)
        assert crc32c(memoryview(data)) == package.crc32c(data)
    assert crc32c(b"123456789") == 0xE3069283
