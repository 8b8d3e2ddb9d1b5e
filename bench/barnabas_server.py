"""Barnabas as a node, started as a user starts it."""

import sys
from pathlib import Path

import barnabas
from bench.server import Server

COMMAND = str(Path(sys.executable).parent / "barnabas")


class BarnabasServer(Server):
    """The `barnabas` command of the virtual environment that runs the benchmark."""

    name = "barnabas"
    version = barnabas.__version__

    def format_command(self, cluster_id: str) -> list[str]:
        return [
            COMMAND, "storage", "format",
            "-t", cluster_id, "-c", str(self.properties),
        ]  # fmt: skip

    def start_command(self) -> list[str]:
        return [COMMAND, "start", str(self.properties)]
