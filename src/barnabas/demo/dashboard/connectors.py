"""The connectors: what state each of them is in, as their workers say."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.demo.connectors import connector_states
from barnabas.demo.dashboard.readers import ReaderThread
from barnabas.demo.dashboard.state import DashboardState

_EVERY_SECONDS = 2.0


class ConnectorMonitor(ReaderThread):
    """Asks the workers' REST interfaces, as any client could."""

    def __init__(self, bootstrap: str, urls: Sequence[str], state: DashboardState) -> None:
        super().__init__("connector-monitor", bootstrap, state)
        self._known: dict[str, dict[str, str]] = {url: {} for url in urls}

    def read(self) -> None:
        """Look until `stopping` is set."""
        while not self.stopping.is_set():
            self.state.set_connectors(self.look())
            self.stopping.wait(_EVERY_SECONDS)

    def look(self) -> dict[str, str]:
        """Return each connector's state; DOWN are those whose worker does not answer any more."""
        for url, known in self._known.items():
            states = connector_states(url)
            self._known[url] = dict.fromkeys(known, "DOWN") if states is None else states
        return {name: state for known in self._known.values() for name, state in known.items()}
