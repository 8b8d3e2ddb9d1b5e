"""Jars of Apache Kafka and of connectors for it: in .cache, fetched by Maven when they are not."""

import shutil
import subprocess
from pathlib import Path

from bench.settings import CACHE, KAFKA_VERSION, ROOT

LIBS = CACHE / f"kafka-{KAFKA_VERSION}" / "libs"
POM = ROOT / "tools" / "kafka" / "pom.xml"


def kafka_classpath() -> str:
    """The classpath of broker and tools. Raises RuntimeError if it cannot be fetched."""
    if not (LIBS / f"kafka-tools-{KAFKA_VERSION}.jar").exists():
        fetch_jars(f"Apache Kafka {KAFKA_VERSION}", POM, LIBS)
    return f"{LIBS}/*"


def java() -> str:
    """The path of Java. Raises RuntimeError if Java is not installed."""
    path = shutil.which("java")
    if path is None:
        raise RuntimeError("java is not installed; Apache Kafka needs version 17 or later")
    return path


def fetch_jars(what: str, pom: Path, libs: Path, repository: Path | None = None) -> None:
    """Put the jars that a POM names into a folder. Raises RuntimeError where that fails.

    `repository` is Maven's own; None: the user's. Where that has the POM of a version that Maven
    did not choose in the end, but no jar, Ivy looks no further, so Spark cannot fetch that version.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise RuntimeError(f"mvn is not installed, and {libs} lacks the jars of {what}")
    print(f"Fetching {what} with Maven …", flush=True)
    partial = Path(f"{libs}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    own = [] if repository is None else [f"-Dmaven.repo.local={repository}"]
    command = [
        maven, "--batch-mode", "--quiet", "-f", str(pom), *own,
        "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={partial}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"mvn failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    shutil.rmtree(libs, ignore_errors=True)
    partial.rename(libs)
