"""`/compatibility`: whether a schema could be registered."""

from typing import Any

from barnabas.registry.core.compatibility import Verdict, check_all, check_version
from barnabas.registry.http.answers import Answer, json_answer
from barnabas.registry.http.bodies import schema_request
from barnabas.registry.http.call import Call


def check_one(call: Call) -> Answer:
    """POST /compatibility/subjects/{subject}/versions/{version}."""
    verdict = check_version(
        call.view,
        call.subject(),
        call.text(1),
        schema_request(call.body),
        normalize=call.query.flag("normalize"),
        verbose=call.query.flag("verbose"),
    )
    return _answer(call, verdict)


def check(call: Call) -> Answer:
    """POST /compatibility/subjects/{subject}/versions."""
    verdict = check_all(
        call.view,
        call.subject(),
        schema_request(call.body),
        normalize=call.query.flag("normalize"),
        verbose=call.query.flag("verbose"),
    )
    return _answer(call, verdict)


def _answer(call: Call, verdict: Verdict) -> Answer:
    body: dict[str, Any] = {"is_compatible": verdict.is_compatible}
    if call.query.flag("verbose"):
        body["messages"] = list(verdict.messages)
    return json_answer(body)
