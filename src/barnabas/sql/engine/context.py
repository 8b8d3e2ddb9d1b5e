"""The context that all parts of the SQL engine share."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import Command
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.engine.cluster import Cluster
from barnabas.sql.engine.session import Session
from barnabas.sql.functions.catalog import Function
from barnabas.sql.syntax.tree import ParsedStatement


@dataclass
class Context:
    """Code that reads or changes the metastore holds `lock`."""

    cluster: Cluster
    functions: Mapping[str, Function]
    schemas: SchemaStore | None
    settings: dict[str, Any]
    metastore: MetaStore = field(default_factory=MetaStore)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def partitions(self) -> dict[str, int]:
        """The number of partitions of each topic."""
        return {name: info.partitions for name, info in self.cluster.topics().items()}

    def analyse(
        self,
        parsed: ParsedStatement,
        session: Session,
        metastore: MetaStore | None = None,
        topics: Mapping[str, int] | None = None,
    ) -> Command:
        """The command of a statement; raises SqlError.

        `topics`: the topics' partitions, where they are known; none if they do not matter.
        """
        return analyse(
            parsed.statement,
            self.metastore if metastore is None else metastore,
            session.settings,
            self.functions,
            self.schemas,
            topics=self.partitions() if topics is None else topics,
            text=parsed.text,
        )
