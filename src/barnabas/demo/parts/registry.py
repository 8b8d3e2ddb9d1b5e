"""The schema registry, and the topics, which want their schemas in it."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.schema_registry import SchemaRegistryError

from barnabas.demo import registry
from barnabas.demo.contract import Plan
from barnabas.demo.database.stations import DatabaseError
from barnabas.demo.generators.publisher import PublishError
from barnabas.demo.generators.run import publish_tables
from barnabas.demo.outcome import DemoFailedError
from barnabas.demo.parts.part import Part
from barnabas.demo.schemas import EVOLVED_FIELD, EVOLVING_TOPIC
from barnabas.demo.workspace import Settings


class Registry(Part):
    """The registry's process."""

    name = "registry"

    def start(self) -> None:
        """Start it."""
        stage = self.stage
        self.say("working", "starting")
        spec = registry.registry_spec(
            stage.settings,
            stage.bootstrap,
            is_own_cluster=stage.is_own_cluster,
            access=stage.access,
        )
        stage.supervisor.start(spec, self)

    @property
    def where(self) -> str:
        """Its address, and what became of the schemas."""
        progress = self.stage.reports.generators()
        if progress and progress["refused"]:
            return schemas_text(self.stage.settings, progress)
        return self.stage.settings.registry_url

    def answers(self) -> bool:
        """Return whether it answers, asked once."""
        return registry.answers(self.stage.settings.registry_url)

    def create_topics(self) -> None:
        """Create the topics, and publish the stations to their table or topic."""
        stage = self.stage
        table = None if stage.capture is None else stage.capture.table
        try:
            publish_tables(stage.bootstrap, stage.settings.registry_url, self._plan(), table)
        except KafkaException as error:
            raise DemoFailedError(
                f"the topics could not be created: {error.args[0].str()}",
                stage.supervisor.get("broker"),
            ) from error
        except (DatabaseError, PublishError, SchemaRegistryError) as error:
            raise DemoFailedError(f"the station table could not be published: {error}") from error

    def _plan(self) -> Plan:
        settings = self.stage.settings
        return {
            "seed": settings.seed,
            "rate": settings.rate,
            "acceleration": settings.acceleration,
            "seconds": None,
        }

    def show(self) -> None:
        """Show what became of the schemas."""
        super().show()
        if not self._is_recovering:
            self.say("ready", self.where)


def schemas_text(settings: Settings, progress: dict[str, Any]) -> str:
    """Say how the schemas have evolved, and what the registry refused."""
    since = time.strftime("%a %d %b %H:%M", time.gmtime(progress["evolved_ms"] / 1000))
    return (
        f"{settings.registry_url}, {EVOLVING_TOPIC} evolved at {since}: + {EVOLVED_FIELD}; "
        f"an incompatible change was refused: {progress['refused']}"
    )
