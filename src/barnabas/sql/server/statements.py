"""POST /ksql: runs statements in order, with one answer for each."""

from __future__ import annotations

from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.engine import DISTRIBUTED, KsqlEngine, Tried
from barnabas.sql.engine.push import PushQuery
from barnabas.sql.engine.session import Session
from barnabas.sql.errors import SqlError
from barnabas.sql.server.connectors.client import ConnectClients, Headers
from barnabas.sql.server.connectors.statements import ConnectorStatements, is_about_connectors
from barnabas.sql.server.describing import Describer
from barnabas.sql.server.entities import Entity, command_status, entity
from barnabas.sql.server.errors import (
    BAD_REQUEST,
    BAD_STATEMENT,
    QUERY_ENDPOINT,
    SERVER_ERROR,
    ApiError,
    of_sql,
)
from barnabas.sql.server.gathering import Gatherer
from barnabas.sql.server.peers import Peers
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.tree import Control, ParsedStatement

STATEMENTS_MAX = 1_000
"""Of one request: all of them are tried before the first is done."""
_SEMICOLONS_MAX = 10 * STATEMENTS_MAX
"""With more, also in literals, a request is not even read."""
_SESSION = (
    tree.SetProperty,
    tree.UnsetProperty,
    tree.DefineVariable,
    tree.UndefineVariable,
)


class Statements:
    """Executes texts of statements."""

    def __init__(
        self,
        engine: KsqlEngine,
        describer: Describer,
        peers: Peers,
        connect: ConnectClients | None = None,
    ) -> None:
        self._engine = engine
        self._describer = describer
        self._gatherer = Gatherer(engine, peers)
        self._connectors = ConnectorStatements(
            connect or ConnectClients(engine.settings), describer.sources_of
        )

    def run(
        self, text: str, session: Session, *, is_internal: bool = False, headers: Headers = ()
    ) -> list[Entity]:
        """The answers; raises ApiError, with the answers to the statements that were done.

        `is_internal`: another server asks, which wants to know of this one alone. `headers`: those
        of the request.
        """
        if text.count(";") > _SEMICOLONS_MAX:
            raise ApiError(BAD_REQUEST, "The request has too many statements")
        try:
            statements = list(self._engine.parse(text, session))
        except SqlError as error:
            raise of_sql(error, text) from error
        if len(statements) > STATEMENTS_MAX:
            raise ApiError(
                BAD_REQUEST,
                f"The request has {len(statements)} statements; {STATEMENTS_MAX} may be",
            )
        for parsed, _ in statements:
            if isinstance(parsed.statement, (tree.Query, tree.PrintTopic)):
                raise ApiError(
                    QUERY_ENDPOINT,
                    "The following statement types should be issued to the websocket endpoint "
                    "'/query':\n\t* PRINT\n\t* SELECT",
                    statement=parsed.text,
                )
        try:
            checked = [one for one in statements if self._push_query(one[0]) is None]
            results = self._engine.check(checked)
            tried = {id(one[0]): result for one, result in zip(checked, results, strict=True)}
            for parsed, _ in statements:
                self._connectors.check(parsed, headers)
        except SqlError as error:
            raise of_sql(error, text) from error
        except ClusterError as error:
            raise ApiError(SERVER_ERROR, str(error), statement=text) from error
        entities: list[Entity] = []
        for parsed, own in statements:
            result = tried.get(id(parsed))
            entities += self._one(parsed, own, entities, headers, result, is_internal=is_internal)
        return entities

    def _one(
        self,
        parsed: ParsedStatement,
        session: Session,
        done: list[Entity],
        headers: Headers,
        tried: Tried | None,
        *,
        is_internal: bool,
    ) -> list[Entity]:
        try:
            if is_about_connectors(parsed.statement):
                return [self._connectors.answer(parsed, headers)]
            return self._answers(parsed, session, tried, is_internal=is_internal)
        except SqlError as error:
            raise of_sql(error, parsed.text, done) from error
        except ApiError as error:
            if error.statement is None and not error.is_generic:
                error.statement = parsed.text
            error.entities = [*done, *error.entities]
            raise
        except ClusterError as error:
            raise ApiError(
                SERVER_ERROR, str(error), statement=parsed.text, entities=done
            ) from error

    def _answers(
        self,
        parsed: ParsedStatement,
        session: Session,
        tried: Tried | None,
        *,
        is_internal: bool,
    ) -> list[Entity]:
        statement = parsed.statement
        if isinstance(statement, _SESSION):
            return []
        if isinstance(statement, tree.InsertValues):
            command = None if tried is None else tried.command
            self._engine.inserting.insert(parsed, session, command)
            return []
        push = self._push_query(parsed)
        if push is not None:
            push.stop()
            return [
                entity(
                    "terminate_query",
                    parsed.text,
                    queryId=push.query_id,
                    wasTerminated=True,
                )
            ]
        if isinstance(statement, DISTRIBUTED):
            executed = self._engine.execute(parsed, session, tried)
            return [command_status(parsed.text, one) for one in executed]
        if isinstance(statement, tree.RunScript):
            raise ApiError(BAD_STATEMENT, "This server runs no scripts.", statement=parsed.text)
        answer = self._describer.answer(parsed, session)
        return [self._gatherer.gathered(statement, answer, is_internal=is_internal)]

    def _push_query(self, parsed: ParsedStatement) -> PushQuery | None:
        """The push query that a statement ends."""
        statement = parsed.statement
        if isinstance(statement, tree.ControlQuery) and statement.control is Control.TERMINATE:
            return self._engine.asking.push_query(statement.query_id)
        return None
