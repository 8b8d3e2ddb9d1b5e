"""A SQL server as JSON: statements, queries and lists.

Statements may read and write any topic, so they need their right from a role without patterns. What
they return is not masked: with masked fields, all but lists and descriptions need `unmasked` too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from barnabas.console.pages.calls import (
    BadRequestError,
    Call,
    Endpoint,
    Streamed,
    destroying,
    members,
    of_cluster,
)
from barnabas.console.services.sql import weigh, without_secrets

SHOWN_CHARS_MAX = 1_000
"""Characters of a statement in the audit log."""


def statement(call: Call) -> Any:
    """Run statements; those that destroy repeat a name."""
    text = call.given("sql")
    needed = weigh(text)
    _need(call, needed.right)
    if needed.confirm is not None:
        call.confirm(needed.confirm)
    if needed.right == "view":
        return call.services.sql.run(text)
    return call.do(
        "run SQL",
        without_secrets(text)[:SHOWN_CHARS_MAX],
        lambda: call.services.sql.run(text),
        right=needed.right,
    )


def weighed(call: Call) -> Any:
    """The rights that a statement needs before it runs."""
    needed = weigh(call.given("sql"))
    may = call.user.may(needed.right, everywhere=True)
    return {**members(needed), "may": may}


def query(call: Call) -> Any:
    """The rows of a query, for as long as it runs."""
    text = call.text("sql")
    if not text.strip():
        raise BadRequestError("the query is missing")
    _need(call, "read")

    def lines(stopping: threading.Event) -> Iterator[Any]:
        yield from call.services.sql.query(text, stopping)

    return Streamed(lines)


def _need(call: Call, right: str) -> None:
    call.user.need(right, "this statement", everywhere=True)
    if right != "view" and call.masked:
        call.user.need("unmasked", "SQL while fields are masked", everywhere=True)


def sources(call: Call) -> Any:
    """A page of streams and tables."""
    return call.services.sql.sources(call.asked())


def queries(call: Call) -> Any:
    """A page of queries."""
    return call.services.sql.queries(
        call.asked(), allowed=lambda name: call.user.may("view", query=name)
    )


def explained(call: Call) -> Any:
    """Explain a query, and say what the user may do with it."""
    name = call.path["query"]
    may = {"admin": call.user.may("admin", query=name)}
    return {**members(call.services.sql.explain(name)), "may": may}


def activity(call: Call) -> Any:
    """A query's lag and its last micro-batches."""
    return call.services.sql.activity(call.path["query"])


def functions(call: Call) -> Any:
    """The names of functions, for completion."""
    return call.services.sql.functions()


def columns(call: Call) -> Any:
    """The columns of a stream or table, for completion."""
    return call.services.sql.columns(call.path["source"])


terminate = destroying(
    "terminate query", "query", lambda services, name: services.sql.terminate(name)
)


def drop(call: Call) -> Any:
    """Drop a stream or table; the body repeats its name."""
    name, kind = call.path["source"], call.given("kind")
    call.confirm(name)
    call.do(f"drop {kind}"[:100].lower(), name, lambda: call.services.sql.drop(kind, name))
    return {}


_ONE = "/api/sql/queries/{query}"
ENDPOINTS = (
    of_cluster("POST", "/api/sql/statements", "view", "running statements", statement),
    of_cluster("POST", "/api/sql/weigh", "view", "running statements", weighed),
    Endpoint(
        "GET", "/api/sql/rows", "read", "running queries", query, is_stream=True, everywhere=True
    ),
    of_cluster("GET", "/api/sql/sources", "view", "streams and tables", sources),
    of_cluster("DELETE", "/api/sql/sources/{source}", "admin", "dropping it", drop),
    of_cluster("GET", "/api/sql/sources/{source}/columns", "view", "columns", columns),
    of_cluster("GET", "/api/sql/functions", "view", "functions", functions),
    Endpoint("GET", "/api/sql/queries", "view", "the list of queries", queries),
    Endpoint("GET", _ONE, "view", "this query", explained),
    Endpoint("GET", f"{_ONE}/activity", "view", "this query", activity),
    Endpoint("DELETE", _ONE, "admin", "ending this query", terminate),
)
