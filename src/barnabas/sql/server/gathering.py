"""The answers of all servers of a service about a query, merged into one.

A server knows of the queries that it runs itself; what it would say of others is left out, and
asked of those who run them.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.running import RunningQuery
from barnabas.sql.server.entities import Entity
from barnabas.sql.server.peers import INTERNAL, Peers
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.tree import Listed

UNRESPONSIVE = "UNRESPONSIVE"


class Gatherer:
    """Completes answers to SHOW QUERIES, DESCRIBE EXTENDED and EXPLAIN."""

    def __init__(self, engine: KsqlEngine, peers: Peers) -> None:
        self._engine = engine
        self._peers = peers

    def gathered(self, statement: tree.Statement, entity: Entity, *, is_internal: bool) -> Entity:
        """The answer to SHOW or DESCRIBE with what the other servers say of queries."""
        lists = _queries_of(statement, entity)
        for one in lists:
            self._only_own(one)
        if is_internal or not lists:
            return entity
        answers = self._peers.ask_all(
            {"ksql": entity["statementText"], "requestProperties": {INTERNAL: True}}
        )
        for host, answer in answers.items():
            theirs: dict[str, Entity] = {}
            if isinstance(answer, list) and answer and isinstance(answer[0], dict):
                theirs = {one["id"]: one for one in _queries_of(statement, answer[0])}
                _add_offsets(entity, answer[0])
            for one in lists:
                self._merge(one, theirs.get(one["id"]), host, is_answer=answer is not None)
        for one in lists:
            self._conclude(one)
        return entity

    def _query(self, one: Entity) -> RunningQuery | None:
        return self._engine.queries.get(one["id"])

    def _only_own(self, one: Entity) -> None:
        """Leave out what this server supposes of queries that others run."""
        running = self._query(one)
        if running is not None and not running.is_here:
            for member in ("statusCount", "ksqlHostQueryStatus"):
                if member in one:
                    one[member] = {}
            one.pop("message", None)

    def _merge(self, one: Entity, theirs: Entity | None, host: str, *, is_answer: bool) -> None:
        running = self._query(one)
        slots = self._peers.slots_of(host)
        if running is None:
            return
        if not is_answer:
            if running.slot in slots and not running.is_here:
                _add(one, {UNRESPONSIVE: 1}, {host: UNRESPONSIVE})
        elif theirs is not None:
            _add(one, theirs.get("statusCount") or {}, theirs.get("ksqlHostQueryStatus") or {})
            if theirs.get("message"):
                one["message"] = theirs["message"]
            if "microBatches" in theirs:
                one["microBatches"] = theirs["microBatches"]
            if theirs.get("queryErrors"):
                one["queryErrors"] = [*one["queryErrors"], *theirs["queryErrors"]]

    def _conclude(self, one: Entity) -> None:
        """One state of all; a query that nobody runs yet is about to be."""
        counts = one.get("statusCount")
        states = counts if counts is not None else one.get("ksqlHostQueryStatus", {}).values()
        for state in ("ERROR", UNRESPONSIVE, "PAUSED", "RUNNING"):
            if state in states:
                one["state"] = state
                return
        if counts is not None:
            one["statusCount"] = {one["state"]: 1}


def _add(one: Entity, counts: Mapping[str, int], states: Mapping[str, str]) -> None:
    if "statusCount" in one:
        for state, count in counts.items():
            one["statusCount"][state] = one["statusCount"].get(state, 0) + count
    if "ksqlHostQueryStatus" in one:
        one["ksqlHostQueryStatus"] |= states


def _add_offsets(entity: Entity, theirs: Entity) -> None:
    """Add the offsets that queries have read; only the server that runs a query knows them."""
    told = theirs.get("sourceDescription", {}).get("queryOffsetSummaries", ())
    by_group = {one["groupId"]: one["topicSummaries"] for one in told}
    for one in entity.get("sourceDescription", {}).get("queryOffsetSummaries", ()):
        one["topicSummaries"] = one["topicSummaries"] or by_group.get(one["groupId"], [])


def _queries_of(statement: tree.Statement, entity: Entity) -> list[Entity]:
    """The parts of an answer about persistent queries, which other servers may run."""
    if isinstance(statement, tree.Show) and statement.listed is Listed.QUERIES:
        queries = [*entity.get("queries", ()), *entity.get("queryDescriptions", ())]
        return [one for one in queries if one.get("queryType") == "PERSISTENT"]
    if isinstance(statement, tree.Explain) and statement.query_id is not None:
        return [entity["queryDescription"]] if "queryDescription" in entity else []
    if isinstance(statement, tree.Describe) and statement.extended:
        one = entity.get("sourceDescription", {})
        return [*one.get("readQueries", ()), *one.get("writeQueries", ())]
    return []
