"""The page, and the web server behind it."""

from __future__ import annotations

from barnabas.demo import commands
from barnabas.demo.parts.part import Part


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
            workers=[
                *([] if stage.capture is None else [stage.settings.connect_url]),
                *([] if stage.lake is None else [stage.settings.warehouse_url]),
            ],
            is_iceberg=stage.lake is not None,
        )
        stage.supervisor.start(spec, self)

    @property
    def where(self) -> str:
        """The page's address."""
        return self.stage.url

    def answers(self) -> bool:
        """Return whether the page answers, asked once."""
        return self.stage.reports.page() is not None
