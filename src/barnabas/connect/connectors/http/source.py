"""The HTTP source: the pages of a web service's answers, from where the last one ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from barnabas.connect.config.definition import Definition
from barnabas.connect.connectors.base import (
    ConnectorContext,
    Settings,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.http.pages import PageReader, partition_of
from barnabas.connect.connectors.http.settings import SOURCE, check, errors_of
from barnabas.connect.record import JsonMap
from barnabas.schemas.data.errors import ConnectError


class HttpSource(SourceConnector):
    """Reads a web service.

    Its source partition is `{"url"}`, without login and parameters, its offset `{"position",
    "skip"}`: the page's cursor or number and how many of its records were read.
    """

    definition: ClassVar[Definition] = SOURCE
    _settings: Settings = MappingProxyType({})

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        return errors_of(self.definition, settings)

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Check the settings together."""
        check(self.definition, settings)
        self._settings = settings

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: the worker has the records of a page already."""
        return False

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """One address is one task."""
        return [dict(self._settings)]

    def reader(self, context: TaskContext) -> SourceReader:
        """Return what asks."""
        values = self.definition.parse(context.settings)
        stored = None
        if context.offsets is not None:
            stored = context.offsets.offset(partition_of(values))
        return PageReader(values, stored, context.wait)

    def exactly_once_support(self, settings: Settings) -> bool | None:
        """Return where pages name the next page."""
        return settings.get("paging.mode", "none") != "none"

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store."""
        for partition, offset in offsets:
            if "url" not in partition:
                raise ConnectError("Partition objects should contain the key 'url'")
            if offset is not None and "position" not in offset:
                raise ConnectError(
                    "Offset objects should either be null or contain the key 'position'"
                )
        return True
