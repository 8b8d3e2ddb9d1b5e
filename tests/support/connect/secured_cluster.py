"""Clusters of processes with a listener as `barnabas dev --secure` has it: TLS, SCRAM and ACLs."""

from __future__ import annotations

from pathlib import Path

from barnabas.app.secured import ADMIN, Secured, Security, open_secured
from barnabas.base.config.properties import parse_properties
from support.cluster_processes import Barnabas, ClusterProcesses, Program
from support.ports import free_port

_HOST = "127.0.0.1"


class SecureListener:
    """A `Program`: nodes and clients log in over TLS; the test itself has a way without."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.secured: Secured = open_secured(str(directory), Security.SCRAM)
        self.addresses: list[str] = []
        self._program: Program = Barnabas()

    def format(self, properties: Path, cluster_id: str) -> list[str]:
        given = parse_properties(properties.read_text())
        node_id, port = int(given["node.id"]), free_port()
        self.secured.make_certificate(node_id, [_HOST])
        own = self.secured.node_properties(node_id, "CONTROLLER")
        own["listener.security.protocol.map"] += ",PLAINTEXT:PLAINTEXT"
        own["super.users"] += ";User:ANONYMOUS"
        own["listeners"] = f"{given['listeners']},{self.secured.listener}://{_HOST}:{port}"
        self.addresses.append(f"{_HOST}:{port}")
        lines = (f"{name}={value}\n" for name, value in (given | own).items())
        properties.write_text("".join(lines))
        users = [word for one in self.secured.scram for word in ("--add-scram", one)]
        return [*self._program.format(properties, cluster_id), *users]

    def start(self, properties: Path) -> list[str]:
        return self._program.start(properties)

    def admin_file(self) -> dict[str, str]:
        """Return what the administrator's properties file says."""
        self.secured.write_client_files(",".join(self.addresses))
        return parse_properties(Path(self.secured.file_of(ADMIN)).read_text())


def secured_cluster(
    directory: Path, nodes: int, overrides: dict[str, str] | None = None
) -> tuple[ClusterProcesses, SecureListener]:
    """Return a cluster that is not started yet, and how clients log in to it."""
    program = SecureListener(directory / "secrets")
    return ClusterProcesses(directory, nodes, overrides, program=program), program
