"""Access to the REST interface by ksqlDB's properties, and the format of its refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.types import ASGIApp

from barnabas.sql.server.errors import FORBIDDEN, MEDIA_TYPE, TIMED_OUT, UNAUTHORIZED, ApiError
from barnabas.web.guard import Refusal
from barnabas.web.login import BasicLogin
from barnabas.web.passwords import REALM, ROLES, SKIP_PATHS, of_properties
from barnabas.web.protection import Origins, Protection, Refused, Rules, words
from barnabas.web.watch import Watch

PASSWORD_FILE = "barnabas.sql.password.file"
REQUESTS_MAX = 1_000
"""Requests that are answered at once; more are turned away until some are done."""
_NO_METHOD, _NOT_READY, _TOO_BUSY = 40500, 50301, 50302
_ROW_BY_ROW = "/inserts-stream"
_OPEN_PATHS = ("/v1/metadata", "/v1/metadata/id", "/healthcheck")
"""The paths that ksqlDB answers without a password in any case."""
_CODES: Final = {
    Refusal.OTHER_HOST: FORBIDDEN,
    Refusal.OTHER_ORIGIN: FORBIDDEN,
    Refusal.NO_LOGIN: UNAUTHORIZED,
    Refusal.NO_RIGHT: FORBIDDEN,
    Refusal.NO_METHOD: _NO_METHOD,
    Refusal.SLOW_BODY: TIMED_OUT,
    Refusal.LARGE_BODIES: _TOO_BUSY,
    Refusal.TOO_MANY_REQUESTS: _TOO_BUSY,
    Refusal.NOT_READY: _NOT_READY,
}


def refused(refusal: Refusal) -> Refused:
    """A refusal as ksqlDB's error."""
    error = ApiError(_CODES[refusal], refusal.value)
    return Refused(error.status, json.dumps(error.body()).encode(), MEDIA_TYPE.encode())


def login(values: Mapping[str, Any]) -> BasicLogin | None:
    """The login that the properties ask for. Raises ConfigError."""
    passwords = of_properties(values, PASSWORD_FILE)
    if passwords is None:
        return None
    return BasicLogin(
        passwords,
        str(values.get(REALM) or "ksql"),
        words(values.get(ROLES)) or ["*"],
        [*_OPEN_PATHS, *words(values.get(SKIP_PATHS))],
    )


def protected(
    app: ASGIApp,
    values: Mapping[str, Any],
    *,
    is_on_loopback: bool = False,
    watch: Watch | None = None,
) -> Protection:
    """The application behind what the properties ask for. Raises ConfigError."""
    rules = Rules(
        origins=Origins.of(values),
        own_names=() if is_on_loopback else None,
        login=login(values),
        watch=watch,
        requests_max=REQUESTS_MAX,
        streamed_paths=(_ROW_BY_ROW,),
    )
    return Protection(app, refused, rules)
