"""`barnabas doctor` on certificates."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.doctor.findings import Level
from barnabas.cli.doctor.machine import check_certificates
from barnabas.node.config.node_config import NodeConfig
from support.certificates import Authority

FAR = {"days": 100.5}


@pytest.mark.parametrize(
    ("issued", "host", "level", "text"),
    [
        (FAR, "127.0.0.1", Level.OK, "SSL: CN=broker, until"),
        ({"days": 5.5}, "127.0.0.1", Level.NOTE, "it ends in 5 days"),
        ({"days": 1.5}, "127.0.0.1", Level.NOTE, "it ends in 1 day, on"),
        ({"days": 0.5}, "127.0.0.1", Level.NOTE, "it ends within a day, on"),
        ({"days": -2}, "127.0.0.1", Level.FAULT, "it expired on"),
        (FAR, "10.9.8.7", Level.FAULT, "connect to 10.9.8.7, but the certificate is for 127.0.0.1"),
        (FAR, "kafka.example", Level.FAULT, "connect to kafka.example"),
    ],
)
def test_the_certificate_of_a_listener_is_judged(
    tmp_path: Path, issued: dict[str, Any], host: str, level: Level, text: str
) -> None:
    (finding,) = check_certificates(config(Authority(tmp_path).issue("broker", **issued), host))
    assert finding.level is level
    assert text in finding.detail


def test_one_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (finding,) = check_certificates(config(str(tmp_path / "missing.pem"), "127.0.0.1"))
    assert finding.level is Level.FAULT
    assert "cannot be read" in finding.detail


def test_one_that_does_not_hold_yet_is_a_fault(tmp_path: Path) -> None:
    early = datetime.now(UTC) - timedelta(days=30)
    read = config(Authority(tmp_path).issue("broker"), "127.0.0.1")
    (finding,) = check_certificates(read, early)
    assert finding.level is Level.FAULT
    assert "holds only from" in finding.detail


def config(file: str, host: str) -> NodeConfig:
    return NodeConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "SSL://:9092,CONTROLLER://:9093",
            "advertised.listeners": f"SSL://{host}:9092",
            "inter.broker.listener.name": "SSL",
            "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@localhost:9093",
            "log.dirs": "/data",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": file,
        }
    )
