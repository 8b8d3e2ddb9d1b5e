"""The connectors: what state each of them is in, as their worker says."""

from __future__ import annotations

from barnabas.demo.connectors import connector_states
from barnabas.demo.dashboard.readers import ReaderThread
from barnabas.demo.dashboard.state import DashboardState

_EVERY_SECONDS = 2.0


class ConnectorMonitor(ReaderThread):
    """Asks the worker's REST interface, as any client could."""

    def __init__(self, bootstrap: str, url: str, state: DashboardState) -> None:
        super().__init__("connector-monitor", bootstrap, state)
        self._url = url

    def read(self) -> None:
        """Look until `stopping` is set."""
        while not self.stopping.is_set():
            self.state.set_connectors(connector_states(self._url))
            self.stopping.wait(_EVERY_SECONDS)
