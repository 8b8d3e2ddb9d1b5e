"""Kafka and we cannot use one directory at once: the lock that Kafka takes, by Kafka's class."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.base.disk import DirectoryInUseError
from barnabas.base.local_disk import LocalDisk
from support import java_host
from support.apache_kafka import QUICK_JVM

pytestmark = java_host.needs_java


@contextmanager
def kafka_tries(path: Path) -> Iterator[str]:
    """What Kafka says of the lock, which it holds, if it got it, as long as the block lasts."""
    source = str(java_host.SOURCES / "LockHolder.java")
    libs = str(java_host.LIBS[-1] / "*")
    command = [str(java_host.JAVA), *QUICK_JVM, "-cp", libs, source, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


def test_kafka_s_lock_keeps_us_out_and_ours_keeps_kafka_out(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    disk = LocalDisk()
    with kafka_tries(path) as answer:
        assert answer == "taken"
        with pytest.raises(DirectoryInUseError):
            disk.lock(str(path))
    disk.lock(str(path))
    with kafka_tries(path) as answer:
        assert answer == "refused"
    disk.close()
