"""The connector: Debezium's PostgreSQL source by its class name, settings and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.connect.connectors.base import (
    Settings,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.postgres.catalog import Catalog
from barnabas.connect.connectors.postgres.reader import PostgresReader
from barnabas.connect.connectors.postgres.rights import missing_rights
from barnabas.connect.connectors.postgres.server import connect
from barnabas.connect.connectors.postgres.settings import DEFINITION, PostgresSettings
from barnabas.connect.connectors.postgres.slots import check_server
from barnabas.connect.record import JsonMap
from barnabas.schemas.data.errors import ConfigError, ConnectError


class PostgresConnector(SourceConnector):
    """Captures the changes of one database. There is one task, since its log is one."""

    definition = DEFINITION

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what does not go together, and what the server or its rights do not allow."""
        try:
            parsed = PostgresSettings.parse(settings)
        except ConfigError as error:
            own = DEFINITION.validate(settings).values()
            return {} if any(v.errors for v in own) else {"topic.prefix": [str(error)]}
        try:
            with connect(parsed) as connection:
                check_server(connection)
                tables = Catalog(connection, parsed).captured()
                return missing_rights(connection, parsed, tables)
        except ConnectError as error:
            return {"database.hostname": [f"Unable to connect: {error}"]}

    def start(self, context: object, settings: Settings) -> None:
        """Check the settings. Raises ConfigError."""
        PostgresSettings.parse(settings)
        self._settings = settings

    def reader(self, context: TaskContext) -> SourceReader:
        return PostgresReader(context)

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        for partition, offset in offsets:
            if set(partition) != {"server"}:
                raise ConnectError('A source partition of this connector is {"server": prefix}')
            if offset is not None and not isinstance(offset.get("lsn"), int):
                raise ConnectError('An offset of this connector has a number "lsn"')
        return True
