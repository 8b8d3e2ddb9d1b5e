"""Starts a MongoDB server for tests: mongo-java-server (Maven), which has its data in memory.

It is no MongoDB: its change streams are those of single collections, name no namespace, and tell
updates otherwise; `accept` is what the driver has
to overlook to talk to it at all.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bson
import pymongo.common
import pytest
from pymongo.synchronous.change_stream import ChangeStream

from support.apache_kafka import QUICK_JVM

VERSION = "1.47.0"
_NETTY = "4.2.2.Final"
_ARTIFACTS = (
    *(
        f"de/bwaldvogel/{name}/{VERSION}/{name}-{VERSION}.jar"
        for name in (
            "mongo-java-server",
            "mongo-java-server-core",
            "mongo-java-server-memory-backend",
        )
    ),
    "org/slf4j/slf4j-api/2.0.17/slf4j-api-2.0.17.jar",
    *(
        f"io/netty/netty-{name}/{_NETTY}/netty-{name}-{_NETTY}.jar"
        for name in (
            *("transport", "common", "buffer", "resolver", "codec", "codec-base"),
            *("codec-compression", "handler", "transport-native-unix-common"),
        )
    ),
)
_MAIN = """
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.ServerVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

public class MongoMain {
    public static void main(String[] arguments) throws Exception {
        MongoServer server = new MongoServer(new MemoryBackend().version(ServerVersion.MONGO_5_0));
        server.enableOplog();
        System.out.println("READY " + server.bind().getPort());
        while (System.in.read() >= 0) { }
        server.shutdownNow();
    }
}
"""


def _class_path() -> str | None:
    home = Path.home() / ".m2" / "repository"
    jars = [home / one for one in _ARTIFACTS]
    if not all(jar.exists() for jar in jars):
        if shutil.which("mvn") is None:
            return None
        fetched = subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                "dependency:get",
                f"-Dartifact=de.bwaldvogel:mongo-java-server:{VERSION}",
            ],
            capture_output=True,
            timeout=300,
            check=False,
        )
        if fetched.returncode or not all(jar.exists() for jar in jars):
            return None
    return ":".join(map(str, jars))


@contextmanager
def mongo_server(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server's connection string; skips the test if the server is not available."""
    class_path = _class_path()
    if class_path is None or shutil.which("java") is None:
        pytest.skip("mongo-java-server needs java, and mvn to be fetched")
    accept(patch)
    (folder / "MongoMain.java").write_text(_MAIN)
    process = subprocess.Popen(
        ["java", *QUICK_JVM, "-cp", class_path, str(folder / "MongoMain.java")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline().split()
        assert line[:1] == ["READY"], "mongo-java-server does not start"
        yield f"mongodb://127.0.0.1:{line[1]}"
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def accept(patch: pytest.MonkeyPatch) -> None:
    """Let the driver take a server that calls itself 4.2 and tells no operation times."""
    patch.setattr(pymongo.common, "MIN_SUPPORTED_WIRE_VERSION", 6)
    original = ChangeStream._process_result

    def process(stream: Any, result: Any) -> None:
        if stream._start_at_operation_time is None and not (
            stream._uses_resume_after or stream._uses_start_after
        ):
            stream._start_at_operation_time = bson.Timestamp(int(time.time()), 1)
        original(stream, result)

    patch.setattr(ChangeStream, "_process_result", process)
