"""Programs that run with `-W error`: a cluster that ends leaves no warning behind."""

import subprocess
import sys

PROGRAM = """
import gc
from barnabas import Cluster

for _ in range(2):
    with Cluster(nodes=3):
        pass
    gc.collect()
"""


def test_a_cluster_that_ends_warns_of_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
