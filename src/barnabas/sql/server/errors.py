"""Errors as answers: ksqlDB's codes and messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from barnabas.sql.engine.asking import NotMaterializedError, TooManyQueriesError
from barnabas.sql.engine.config import PropertyError
from barnabas.sql.errors import SqlError
from barnabas.sql.syntax.masking import masked

MEDIA_TYPE = "application/vnd.ksql.v1+json"
JSON = "application/json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
PROTOBUF = "application/vnd.ksql.v1+protobuf"

BAD_REQUEST = 40000
BAD_STATEMENT = 40001
QUERY_ENDPOINT = 40002
UNAUTHORIZED = 40100
FORBIDDEN = 40300
NOT_FOUND = 40400
TIMED_OUT = 40800
TOO_MANY_REQUESTS = 42900
ASSERTION_FAILED = 41700
SERVER_ERROR = 50000
NOT_READY = 50301


class ApiError(Exception):
    """An answer that is no success. `is_generic`: it says nothing of the statement."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        statement: str | None = None,
        entities: Sequence[Any] = (),
        is_generic: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.statement = statement
        self.entities = list(entities)
        self.is_generic = is_generic

    @property
    def status(self) -> int:
        return self.code // 100

    def body(self) -> dict[str, Any]:
        """The error as JSON."""
        if self.statement is None:
            return {
                "@type": "generic_error",
                "error_code": self.code,
                "message": self.message,
            }
        return {
            "@type": "statement_error",
            "error_code": self.code,
            "message": self.message,
            "statementText": self.statement,
            "entities": self.entities,
        }

    def response(self) -> Response:
        return Response(json.dumps(self.body()), self.status, media_type=MEDIA_TYPE)


def of_sql(error: SqlError, statement: str = "", entities: Sequence[Any] = ()) -> ApiError:
    """The answer to a statement that cannot be taken."""
    text = masked(error.statement or statement)
    if isinstance(error, PropertyError):
        return ApiError(BAD_REQUEST, str(error))
    if isinstance(error, TooManyQueriesError):
        return ApiError(TOO_MANY_REQUESTS, str(error))
    if isinstance(error, NotMaterializedError):
        return ApiError(SERVER_ERROR, str(error))
    return ApiError(BAD_STATEMENT, str(error), statement=text, entities=entities)
