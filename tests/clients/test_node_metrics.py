"""A node's figures, scraped from its process."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path

from support.certificates import Authority
from support.node_process import NodeProcess
from support.patience import PATIENCE_S
from support.ports import free_port


def test_connections_and_the_end_of_a_certificate(tmp_path: Path) -> None:
    metrics_port, tls_port = free_port(), free_port()
    node = NodeProcess(tmp_path)
    with node.properties.open("a") as properties:
        properties.write(
            f"listeners=PLAINTEXT://127.0.0.1:{node.port},SSL://127.0.0.1:{tls_port},"
            f"CONTROLLER://127.0.0.1:{node.controller_port}\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT\n"
            f"ssl.keystore.type=PEM\nssl.keystore.location={Authority(tmp_path).issue('node')}\n"
            f"barnabas.metrics.listener=http://127.0.0.1:{metrics_port}\n"
        )
    node.start()
    try:
        url = f"http://127.0.0.1:{metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            samples = dict(
                line.rsplit(" ", 1)
                for line in answer.read().decode().splitlines()
                if not line.startswith("#")
            )
        left_s = float(samples['kafka_server_ssl_certificate_expiry_seconds{listener="SSL"}'])
        assert 0 < left_s <= 86_400
        count = 'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"}'
        assert float(samples[count]) >= 0
    finally:
        assert node.stop() == 0


def test_an_address_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path)
    node.start()
    try:
        other = NodeProcess(tmp_path / "other")
        taken = f"barnabas.metrics.listener=http://127.0.0.1:{node.port}"
        done = subprocess.run(
            [sys.executable, "-m", "barnabas", "start", str(other.properties), "--override", taken],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    finally:
        node.stop()
    assert done.returncode == 1
    assert "cannot show metrics at" in done.stderr
    assert "Traceback" not in done.stderr
