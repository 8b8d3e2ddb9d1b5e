"""A real Prometheus that scrapes nodes and evaluates the alert rules."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barnabas.cli.metrics.command import alert_rules
from support.cluster_processes import ClusterNode
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.ports import free_port

IS_THERE = shutil.which("prometheus") is not None
MISSING = "Prometheus is not installed (package prometheus)"
_SHOWN_AT = re.compile(r"metrics are at http://(127\.0\.0\.1:[0-9]+)/metrics")


def targets(nodes: Iterable[ClusterNode]) -> list[str]:
    """Return the addresses of nodes' metrics, as the nodes print them."""
    return [_SHOWN_AT.findall(node.output.read_text())[-1] for node in nodes]


class Prometheus:
    """A Prometheus that scrapes and evaluates every second."""

    def __init__(self, directory: Path, targets: list[str]) -> None:
        directory.mkdir()
        self._port = free_port()
        (directory / "alerts.yml").write_text(alert_rules())
        config = directory / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{directory / 'alerts.yml'}]\n"
            "scrape_configs:\n"
            "  - job_name: kafka\n"
            f"    static_configs: [{{targets: {json.dumps(targets)}}}]\n"
        )
        self._output = (directory / "prometheus.out").open("wb")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
            ],
            stdout=self._output,
            stderr=self._output,
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _get(self, path: str) -> Any:
        try:
            url = f"http://127.0.0.1:{self._port}/api/v1/{path}"
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                return json.load(answer)["data"]
        except OSError:  # it is starting
            return {}

    def values(self, query: str) -> list[float]:
        """The values that a query has now."""
        found = self._get("query?" + urllib.parse.urlencode({"query": query}))
        return [float(sample["value"][1]) for sample in found.get("result", [])]

    def wait_for_values(self, query: str, expected: list[float]) -> None:
        """Wait until a query has these values: nodes are scraped at different times."""
        wait_until(lambda: self.values(query) == expected, query, shown=lambda: self.values(query))

    def alerts(self) -> dict[str, str]:
        """The alerts that are pending or firing, by their names."""
        alerts = self._get("alerts").get("alerts", [])
        return {alert["labels"]["alertname"]: alert["state"] for alert in alerts}

    def wait_for(self, alert: str, *states: str) -> float:
        """Wait until an alert is in one of the states; after how many seconds it was."""
        began = time.monotonic()
        wait_until(
            lambda: self.alerts().get(alert) in states, f"{alert} {states}", shown=self.alerts
        )
        return time.monotonic() - began
