"""Connections that log in by SCRAM, a second, beside Apache Kafka: `python -m bench.scram_logins`.

Four clients open connections one after the other. Prints logins a second and the server's processor
time for each. `--seconds` is the time of each measurement, after a warm-up as long.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.barnabas_server import BarnabasServer
from bench.kafka_server import KafkaServer
from bench.scram_client import MECHANISM, PASSWORD, USER, log_in
from bench.server import Server, free_ports

CLIENTS = 4
START_TIMEOUT_SECONDS = 60.0
SERVERS: tuple[type[Server], ...] = (KafkaServer, BarnabasServer)
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    for number in range(options.rounds):
        for kind in SERVERS if number % 2 == 0 else SERVERS[::-1]:
            with tempfile.TemporaryDirectory() as directory:
                _measure(kind, Path(directory) / kind.name, options.seconds)


def _measure(kind: type[Server], directory: Path, seconds: float) -> None:
    server = _secured(kind)(directory)
    (port,) = free_ports(1)
    with server.properties.open("a") as properties:
        listeners = next(
            line for line in server.properties.read_text().splitlines() if "listeners=" in line
        )
        properties.write(
            f"{listeners},SASL://127.0.0.1:{port}\n"
            f"advertised.listeners=PLAINTEXT://{server.bootstrap},SASL://127.0.0.1:{port}\n"
            "listener.security.protocol.map="
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT\n"
            f"listener.name.sasl.sasl.enabled.mechanisms={MECHANISM}\n"
            f"listener.name.sasl.{MECHANISM.lower()}.sasl.jaas.config={JAAS}\n"
        )
    server.format()
    with server:
        server.start()
        _wait_until_served(server, port)
        _load(port, seconds)
        before = _cpu_seconds(server.pid)
        rate = _load(port, seconds)
        each_us = (_cpu_seconds(server.pid) - before) / (rate * seconds) * 1e6
        print(f"{kind.name:10} {rate:8.0f} logins/s {each_us:8.0f} µs of processor", flush=True)


def _secured(kind: type[Server]) -> type[Server]:
    """The server, formatted with a user."""

    class Secured(kind):  # type: ignore[misc, valid-type]
        def format_command(self, cluster_id: str) -> list[str]:
            user = f"{MECHANISM}=[name={USER},password={PASSWORD}]"
            return [*super().format_command(cluster_id), "--add-scram", user]

    return Secured


def _wait_until_served(server: Server, port: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            return log_in(port)
        except OSError:
            server.check_alive()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _load(port: int, seconds: float) -> float:
    command = [sys.executable, "-m", "bench.scram_client", str(port), str(seconds)]
    clients = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(CLIENTS)]
    outputs = [client.communicate()[0] for client in clients]
    return float(sum(json.loads(output)["logins_s"] for output in outputs))


def _cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
