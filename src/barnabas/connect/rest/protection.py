"""Access to the REST interface by the worker's settings, and the format of its refusals.

On loopback it answers to addresses and `localhost` alone, and to pages of other origins only where
`access.control.allow.origin` names them: connectors read files and databases of their machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.types import ASGIApp, Scope

from barnabas.connect.rest.app import json_bytes
from barnabas.web.guard import Refusal
from barnabas.web.login import BasicLogin
from barnabas.web.passwords import Passwords
from barnabas.web.protection import Origins, Protection, Refused, Rules
from barnabas.web.watch import Watch

REQUESTS_MAX: Final = 200
"""Requests that are answered at once; more are turned away until some are done."""
_REALM: Final = "KafkaConnect"
_INTERNAL: Final = (
    ("POST", re.compile(r"/?connectors/[^/]+/tasks/?")),
    ("PUT", re.compile(r"/?connectors/[^/]+/fence/?")),
)
"""Between workers, signed with their session key: no login."""
_STATUSES: Final = {
    Refusal.OTHER_HOST: 403,
    Refusal.OTHER_ORIGIN: 403,
    Refusal.NO_RIGHT: 403,
    Refusal.NO_METHOD: 405,
    Refusal.SLOW_BODY: 408,
    Refusal.LARGE_BODIES: 503,
    Refusal.TOO_MANY_REQUESTS: 503,
    Refusal.NOT_READY: 503,
}


def refused(refusal: Refusal) -> Refused:
    """A refusal as Kafka's worker says it."""
    if refusal is Refusal.NO_LOGIN:
        return Refused(401, b"User cannot access the resource.", b"text/plain")
    status, text = _STATUSES[refusal], refusal.value
    if refusal is Refusal.TOO_MANY_REQUESTS:
        text = "The worker has too many requests"
    body = json_bytes({"error_code": status, "message": text})
    return Refused(status, body, b"application/json")


def protected(
    app: ASGIApp,
    settings: Mapping[str, str],
    *,
    headers: Sequence[tuple[bytes, bytes]] = (),
    passwords: Passwords | None = None,
    is_on_loopback: bool = False,
    watch: Watch | None = None,
) -> Protection:
    """Return the application behind what the worker's settings ask for."""
    login = None
    if passwords is not None:
        login = BasicLogin(passwords, _REALM, is_open=_is_internal)
    rules = Rules(
        origins=Origins.of(settings),
        own_names=() if is_on_loopback else None,
        login=login,
        watch=watch,
        requests_max=REQUESTS_MAX,
        headers=headers,
    )
    return Protection(app, refused, rules)


def _is_internal(scope: Scope) -> bool:
    path, asked = scope["path"], scope.get("method")  # a web socket has none
    return any(asked == method and form.fullmatch(path) for method, form in _INTERNAL)
