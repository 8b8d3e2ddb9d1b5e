"""Stations from PostgreSQL by change capture: the server, the table, and the topic beside it."""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import KafkaException

from barnabas.demo import connectors
from barnabas.demo.access import Access
from barnabas.demo.database import stations
from barnabas.demo.database.place import OPERATOR, Place, find_programs
from barnabas.demo.database.stations import DatabaseError, StationsInDatabase
from barnabas.demo.outcome import Check
from barnabas.demo.processes import ChildSpec
from barnabas.demo.reading import AvroValues, records_of
from barnabas.demo.topics import STATIONS
from barnabas.demo.workspace import Settings, Workspace
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient

_STILL_SECONDS_MAX: Final = 5

Rows = dict[str, dict[str, Any]]


class NoDatabaseError(Exception):
    """The stations cannot be in PostgreSQL; the message says in a few words why."""


class Capture:
    """The demo's PostgreSQL and the worker that captures its changes."""

    def __init__(self, workspace: Workspace, settings: Settings, bootstrap: str) -> None:
        """Find PostgreSQL and make its directory. Raises NoDatabaseError."""
        if settings.database_port is None:
            raise NoDatabaseError("this directory is of before there was one")
        programs = find_programs()
        if isinstance(programs, str):
            raise NoDatabaseError(programs)
        self.place = Place(workspace, settings)
        self._port = settings.database_port
        self._workspace = workspace
        self._settings = settings
        self._bootstrap = bootstrap
        self._values = AvroValues(RegistryClient(settings.registry_url))
        try:
            self.place.prepare(programs)
            self.table = StationsInDatabase(self._port, self.place.password(OPERATOR))
        except OSError as error:
            raise NoDatabaseError(str(error)) from error

    def answers(self) -> bool:
        """Return whether the server takes connections, asked once."""
        return stations.answers(self.place, self._port)

    def prepare(self) -> None:
        """Make what is missing in the server. Raises DatabaseError."""
        stations.prepare(self.place, self._port)

    def worker_spec(self, access: Access | None) -> ChildSpec:
        """Return how to start the worker. Raises OSError."""
        if self.in_topic() == {}:
            connectors.forget_offsets(self._workspace)
        return connectors.worker_spec(
            self._workspace, self._settings, self._bootstrap, self.place, access
        )

    def is_complete(self) -> bool:
        """Return whether the topic says of every station what the table says."""
        try:
            wanted = self.table.rows()
        except DatabaseError:
            return False
        return self.in_topic() == wanted

    def in_topic(self) -> Rows | None:
        """Return the rows that the topic has, None where it cannot be read to its end now."""
        rows: Rows = {}
        try:
            for record in records_of(
                (STATIONS,), self._bootstrap, "stations-check", _STILL_SECONDS_MAX
            ):
                key = (record.key() or b"").decode()
                row = self._values.read(record.value())
                rows.pop(key, None)
                if row is not None:
                    rows[key] = row
        except (KafkaException, RegistryError):
            return None
        return rows

    def checks(self) -> list[Check]:
        """Return the topic's stations beside the table's. Raises DatabaseError."""
        wanted, actual = self.table.rows(), self.in_topic() or {}
        same = sum(actual.get(key) == row for key, row in wanted.items())
        is_right = actual == wanted
        return [Check("stations as in PostgreSQL", f"{same:,}", f"{len(wanted):,}", is_right)]
