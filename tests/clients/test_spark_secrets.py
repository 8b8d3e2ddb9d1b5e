"""What a JVM of Spark shows to other users of its machine: neither secrets nor open ports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.spark import needs_spark

DRIVER = """
import contextlib
import sys
import psutil
from barnabas.spark.session import SessionOptions, start_session

secret = sys.stdin.readline().strip()
key = "spark.hadoop.fs.s3a.secret.key"
session = start_session(SessionOptions(packages=(), settings={key: secret}))
rows = session.sparkContext.parallelize(range(10), 2).map(lambda one: one * 2).sum()
own = psutil.Process()
lines = []
for one in own.children(recursive=True):
    with contextlib.suppress(psutil.Error):  # it has ended
        lines.append(" ".join(one.cmdline()))
assert any("SparkSubmit" in line for line in lines), lines
found = session.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.secret.key")
env = session.sparkContext._jvm.org.apache.spark.SparkEnv.get()
print(rows, any(secret in line for line in lines), found == secret,
      env.securityManager().isAuthenticationEnabled())
session.stop()
"""


@needs_spark
@pytest.mark.slow
def test_no_setting_stands_in_an_argument_and_ports_want_a_secret() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input="hush-s3-secret\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.split() == ["90", "False", "True", "True"], done.stderr[-2000:]
