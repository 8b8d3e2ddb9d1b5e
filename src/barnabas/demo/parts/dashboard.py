"""The page and the console, and the web servers behind them."""

from __future__ import annotations

from barnabas.base.addresses import is_loopback
from barnabas.demo import commands
from barnabas.demo.outside import fetch_json
from barnabas.demo.parts.part import Part
from barnabas.demo.processes import Child


class Dashboard(Part):
    """The web server."""

    name = "dashboard"

    def start(self) -> None:
        """Start it, with the workers that there are to ask."""
        stage = self.stage
        self.say("working", "starting")
        spec = commands.dashboard_spec(
            stage.settings,
            stage.bootstrap,
            stage.options.host,
            stage.access,
            workers=stage.workers,
            is_iceberg=stage.lake is not None,
            console_url=self._console_url,
        )
        stage.supervisor.start(spec, self)

    @property
    def _console_url(self) -> str | None:
        """The console's address, unless the page is for browsers that cannot reach it."""
        settings = self.stage.settings
        is_near = settings.console_port is not None and is_loopback(self.stage.options.host)
        return settings.console_url if is_near else None

    @property
    def where(self) -> str:
        """The page's address."""
        return self.stage.url

    def answers(self) -> bool:
        """Return whether the page answers, asked once."""
        return self.stage.reports.page() is not None


class Console(Part):
    """The console of the demo's cluster and services."""

    name = "console"

    def start(self) -> None:
        """Start it; nobody waits for it."""
        stage = self.stage
        if stage.settings.console_port is None:
            self.say("waiting", "none: this directory is of before there was one")
            return
        self.say("working", "starting")
        spec = commands.console_spec(
            stage.settings, stage.bootstrap, stage.access, workers=stage.workers
        )
        stage.supervisor.start(spec, self)
        self._is_recovering = True

    def does_without(self, child: Child) -> bool:
        """No figure is the console's."""
        self._is_recovering = False
        self.say("waiting", f"none: it does not start, see {child.log_path}")
        return True

    @property
    def where(self) -> str:
        """The console's address."""
        return f"{self.stage.settings.console_url}/"

    def answers(self) -> bool:
        """Return whether its pages are there, asked once."""
        if fetch_json(f"{self.where}api/me") is None:
            return False
        self.stage.supervisor.set_ready(self.name)
        return True
