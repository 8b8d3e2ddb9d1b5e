"""Nodes that log in to each other by SCRAM, as brokers and as controllers; clients need not."""

from __future__ import annotations

from pathlib import Path

from support.cluster_processes import Program
from support.ports import free_port

USER = "SCRAM-SHA-{}=[name=node,password=node-secret]"
JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="node" password="node-secret";'
)
SECURED = {
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    ),
    "inter.broker.listener.name": "INTERNAL",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
    **{
        f"listener.name.{listener}.scram-sha-{size}.sasl.jaas.config": JAAS
        for listener in ("internal", "controller")
        for size in (256, 512)
    },
    "listener.name.internal.connections.max.reauth.ms": "4000",
    "listener.name.controller.connections.max.reauth.ms": "4000",
}


class ScramNodes:
    """A `Program` with one more listener, for brokers, and the credentials of all nodes."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def format(self, properties: Path, cluster_id: str) -> list[str]:
        lines = properties.read_text().splitlines()
        (listeners,) = [line for line in lines if line.startswith("listeners=")]
        lines.remove(listeners)
        lines.append(f"{listeners},INTERNAL://127.0.0.1:{free_port()}")
        properties.write_text("\n".join(lines) + "\n")
        users = ["--add-scram", USER.format(256), "--add-scram", USER.format(512)]
        return [*self._program.format(properties, cluster_id), *users]

    def start(self, properties: Path) -> list[str]:
        return self._program.start(properties)
