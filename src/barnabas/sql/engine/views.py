"""Which tables' rows are kept: those that a query makes, and SOURCE tables."""

from __future__ import annotations

import logging

from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.config import SOURCE_TABLES
from barnabas.sql.engine.context import Context
from barnabas.sql.engine.tables import TableView
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted

_log = logging.getLogger(__name__)


class Views:
    """The kept tables; all calls hold the context's lock."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._views: dict[str, TableView] = {}

    def _is_kept(self, source: DataSource) -> bool:
        has_writer = bool(self._context.metastore.writers(source.name))
        are_kept = bool(self._context.settings.get(SOURCE_TABLES, True))
        return source.is_table and (has_writer or (source.is_source and are_kept))

    def keep(self, source: DataSource) -> None:
        """Keep the rows of a source from now on, if it is a table that is kept."""
        self.forget(source.name)
        if not self._is_kept(source):
            return
        try:
            self._views[source.name] = self._new_view(source)
        except ClusterError as error:
            _log.warning("the rows of %s are not kept: %s", source.name, error)

    def _new_view(self, source: DataSource) -> TableView:
        context = self._context
        retention = self._retention_ms(source) if source.is_windowed else None
        return TableView(source, context.cluster, context.schemas, retention)

    def _retention_ms(self, source: DataSource) -> int | None:
        retention = self._context.cluster.topic_config(source.topic).get("retention.ms")
        return None if retention is None or int(retention) < 0 else int(retention)

    def forget(self, name: str) -> None:
        """Keep them no longer."""
        view = self._views.pop(name, None)
        if view is not None:
            view.close()

    def forget_ended(self) -> None:
        """Keep no tables any longer whose queries are terminated: nobody can ask for their rows."""
        for name, view in list(self._views.items()):
            if not self._is_kept(view.source):
                self.forget(name)

    def view(self, source: DataSource) -> TableView:
        """The rows of a table; raises AnalysisError if they are not kept."""
        if not self._is_kept(source):
            raise AnalysisError(
                f"The {backquoted(source.name)} table isn't queryable. To derive a queryable "
                f"table, you can do 'CREATE TABLE QUERYABLE_{source.name} AS SELECT * FROM "
                f"{source.name}'. See https://cnfl.io/queries for more info.\n"
                "Add EMIT CHANGES if you intended to issue a push query."
            )
        if source.name in self._views and self._views[source.name].has_failed:
            self.forget(source.name)
        if source.name not in self._views:
            self._views[source.name] = self._new_view(source)
        return self._views[source.name]

    def all(self) -> dict[str, TableView]:
        """The kept tables by name."""
        return dict(self._views)

    def close(self) -> None:
        """Keep nothing any more."""
        for name in list(self._views):
            self.forget(name)
