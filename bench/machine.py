"""The machine and the software of a run, as the report names them."""

import os
import platform
import subprocess
from pathlib import Path

import barnabas
from bench.kafka_jars import java
from bench.settings import KAFKA_VERSION, ROOT


def describe_machine() -> dict[str, str | int]:
    """Processor, memory, kernel and versions."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(pages / 1e9),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java_version(),
        "kafka": KAFKA_VERSION,
        "barnabas": barnabas.__version__,
        "commit": _commit(),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _java_version() -> str:
    done = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[0].split('"')[1]


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip()
