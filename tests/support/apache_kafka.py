"""Apache Kafka's nodes from the jars in .cache, for holding our tests' own claims against."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBS = sorted(ROOT.glob(".cache/kafka-4.3*/libs"))
JAVA = shutil.which("java")
AVAILABLE = bool(LIBS) and JAVA is not None
MISSING = "needs java and Kafka's jars in .cache/kafka-4.3*/libs"
needs_apache_kafka = pytest.mark.skipif(not AVAILABLE, reason=MISSING)


def needs_kafka_with(jar: str) -> pytest.MarkDecorator:
    """Skip where one of Kafka's jars, such as `connect-file`, is not among those in .cache."""
    is_there = any(found for libs in LIBS for found in libs.glob(f"{jar}-[0-9]*.jar"))
    reason = f"needs java and Kafka's jars, {jar} among them, in .cache/kafka-4.3*/libs"
    return pytest.mark.skipif(JAVA is None or not is_there, reason=reason)


HEAP = "512m"
QUICK_JVM = (
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
)
"""Options of every JVM in the tests: each lives for seconds, and optimizing its code and collecting
garbage in parallel cost more than they save: half of the time where it compiles a source first.
Kafka's own classes need no verification, which is a quarter of the start of one of its tools."""
TELEMETRY = ROOT / "tests" / "support" / "java" / "log4j2.properties"


def java_with_kafka(*arguments: str) -> list[str]:
    """The command that runs a class, or a file of source, with Kafka's classes."""
    assert JAVA is not None
    return [JAVA, *QUICK_JVM, "-cp", f"{LIBS[-1]}/*", *arguments]


class ApacheKafka:
    """A `Program` of `support.cluster_processes`."""

    def format(self, properties: Path, cluster_id: str) -> list[str]:
        arguments = ["format", "-c", str(properties), "-t", cluster_id]
        return self._java("kafka.tools.StorageTool", *arguments)

    def start(self, properties: Path) -> list[str]:
        return self._java("kafka.Kafka", str(properties))

    def _java(self, *arguments: str) -> list[str]:
        assert JAVA is not None
        options = [f"-Xmx{HEAP}", *QUICK_JVM, f"-Dlog4j2.configurationFile={TELEMETRY}"]
        return [JAVA, *options, "-cp", f"{LIBS[0]}/*", *arguments]
