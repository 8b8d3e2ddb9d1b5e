"""The statements that run on the SQL server: their state, and how far they have read."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from barnabas.demo.dashboard.groups import History, Place, fill
from barnabas.demo.dashboard.readers import ReaderThread
from barnabas.demo.dashboard.state import DashboardState, SqlServerStatus, StatementStatus
from barnabas.sql.shell.client import Context, KsqlClient
from barnabas.sql.shell.errors import ShellError

_EVERY_SECONDS = 1.0
_TIMEOUT_SECONDS = 10.0
_QUESTION = "SHOW STREAMS EXTENDED; SHOW TABLES EXTENDED;"


class StatementMonitor(ReaderThread):
    """Asks the server once a second, as any client could."""

    def __init__(self, bootstrap: str, url: str, state: DashboardState) -> None:
        super().__init__("statement-monitor", bootstrap, state)
        self._url = url
        self._ends = self.topic_ends("barnabas-statement-monitor")
        self._histories: dict[str, History] = defaultdict(History)

    def read(self) -> None:
        """Look until `stopping` is set."""
        client = KsqlClient(self._url, timeout_s=_TIMEOUT_SECONDS)
        try:
            while not self.stopping.is_set():
                try:
                    answers = client.statement(_QUESTION, Context({}, {}))
                except ShellError:
                    self.state.set_sql_server_down()
                else:
                    self.state.set_statements(self._status(answers))
                self.stopping.wait(_EVERY_SECONDS)
        finally:
            client.close()

    def _status(self, answers: list[dict[str, Any]]) -> SqlServerStatus:
        statements = described(answers)
        topics = {topic for _, offsets in statements for topic, _ in offsets}
        ends = self._ends.of(sorted(topics)) if topics else {}
        for status, offsets in statements:
            fill(status, offsets, ends, self._histories[status.name])
        return SqlServerStatus(self._url, up=True, statements=[status for status, _ in statements])


def described(
    answers: list[dict[str, Any]],
) -> list[tuple[StatementStatus, dict[Place, int]]]:
    """Return the statements that write streams and tables, each with the next offsets it reads."""
    statements = []
    for answer in answers:
        for source in answer.get("sourceDescriptions", []):
            writers = source.get("writeQueries", [])
            for query, summary in zip(
                writers, source.get("queryOffsetSummaries", []), strict=False
            ):
                offsets = {
                    (topic["kafkaTopic"], place["partition"]): place["consumerOffset"]
                    for topic in summary["topicSummaries"]
                    for place in topic["offsets"]
                }
                status = StatementStatus(
                    source["name"].lower(),
                    sorted({topic for topic, _ in offsets}),
                    state=query.get("state", ""),
                    sink=source.get("topic", ""),
                    text=query.get("queryString", ""),
                )
                statements.append((status, offsets))
    return sorted(statements, key=lambda entry: entry[0].name)
