"""What is measured of a registry: functions of a running one that return named figures."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

from bench.measure import cpu_seconds, memory_megabytes
from bench.registry.schemas import avro, subject
from bench.registry.servers import Registry
from bench.settings import ROOT, Settings

FEW, MANY = 8, 32
Figures = dict[str, float]


def start(registry: Registry, settings: Settings) -> Figures:
    """From the start of the process to the last of the stored schemas; memory after that."""
    began = time.monotonic()
    registry.start()
    count = settings.registry_schemas
    registry.await_answer("GET", f"/schemas/ids/{count}", settings.timeout_seconds)
    seconds = time.monotonic() - began
    # Some take reads before they take writes.
    body = json.dumps({"schema": avro(f"Event{count}")}).encode()
    path = f"/subjects/{subject(count)}/versions"
    registry.await_answer("POST", path, settings.timeout_seconds, body)
    _rest(registry, settings.registry_rest_seconds)
    return {
        "registry_startup_s": seconds,
        "registry_memory_schemas_mb": memory_megabytes(registry.pid),
    }


def start_empty(registry: Registry, settings: Settings) -> Figures:
    """Memory with nothing stored."""
    registry.start()
    registry.await_answer("GET", "/subjects", settings.timeout_seconds)
    _rest(registry, settings.registry_rest_seconds)
    return {"registry_memory_idle_mb": memory_megabytes(registry.pid)}


def reads(registry: Registry, settings: Settings) -> Figures:
    """Schemas by id, and the latest versions of subjects."""
    figures: Figures = {}
    for kind in ("id", "latest"):
        for connections in (FEW, MANY):
            found = _load(registry, settings, kind, connections)
            figures[f"registry_{kind}_{connections}_s"] = found["per_s"]
            figures[f"registry_{kind}_{connections}_p99_ms"] = found["p99_ms"]
            figures[f"registry_{kind}_cpu_us"] = found["cpu_us"]
    return figures


def registrations(registry: Registry, settings: Settings) -> Figures:
    """Schemas that are new, each under a subject of its own, and some that are there."""
    figures: Figures = {}
    for connections in (1, MANY):
        found = _load(registry, settings, "register", connections)
        figures[f"registry_register_{connections}_s"] = found["per_s"]
        figures[f"registry_register_{connections}_p99_ms"] = found["p99_ms"]
    figures["registry_register_cpu_us"] = found["cpu_us"]
    figures["registry_again_s"] = _load(registry, settings, "again", MANY)["per_s"]
    _rest(registry, settings.registry_rest_seconds)
    return {**figures, "registry_memory_load_mb": memory_megabytes(registry.pid)}


REGISTRY_WORKLOADS: dict[str, Callable[[Registry, Settings], Figures]] = {
    "registry-reads": reads,
    "registry-registrations": registrations,
}
"""In the order in which they run, after the start with many schemas."""


def _load(registry: Registry, settings: Settings, kind: str, connections: int) -> Figures:
    arguments = [
        str(registry.port), kind, str(connections), str(settings.registry_seconds),
        f"{registry.name}{connections}",
    ]  # fmt: skip
    os.sync()
    before = cpu_seconds(registry.pid)
    done = subprocess.run(
        [sys.executable, "-m", "bench.registry.load", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=settings.timeout_seconds,
    )
    registry.check_alive()
    if done.returncode:
        raise RuntimeError(f"{kind} with {connections} connections: {done.stderr[-2000:]}")
    found: Figures = json.loads(done.stdout)
    found["cpu_us"] = (cpu_seconds(registry.pid) - before) / found["all"] * 1e6
    return found


def _rest(registry: Registry, seconds: float) -> None:
    time.sleep(seconds)
    registry.check_alive()
