"""Login of the REST interface: HTTP's basic authentication, as an ASGI application around it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.base.config.errors import ConfigError
from barnabas.sql.server.errors import FORBIDDEN, UNAUTHORIZED, ApiError
from barnabas.sql.server.protection import refuse
from barnabas.web.guard import basic_credentials
from barnabas.web.passwords import (
    REALM,
    ROLES,
    SKIP_PATHS,
    Passwords,
    of_properties,
)

PASSWORD_FILE = "barnabas.sql.password.file"

_OPEN_PATHS = ("/v1/metadata", "/v1/metadata/id", "/healthcheck")
"""What ksqlDB answers without a password in any case."""
_log = logging.getLogger(__name__)


class Login:
    """Lets requests of known users through."""

    def __init__(self, app: ASGIApp, passwords: Passwords, values: Mapping[str, Any]) -> None:
        self._app = app
        self._passwords = passwords
        realm = str(values.get(REALM) or "ksql").replace("\\", "").replace('"', "")
        self._challenge = f'Basic realm="{realm}"'.encode("latin-1", "replace")
        roles = _words(values.get(ROLES)) or ["*"]
        self._roles = None if {"*", "**"} & set(roles) else frozenset(roles)
        paths = [*_OPEN_PATHS, *_words(values.get(SKIP_PATHS))]
        self._open = re.compile("|".join(map(_pattern, paths)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            refusal = self._refusal(scope)
            if refusal is not None:
                challenge = ((b"www-authenticate", self._challenge),)
                headers = challenge if refusal.code == UNAUTHORIZED else ()
                await refuse(refusal, scope, receive, send, headers)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ApiError | None:
        if self._open.fullmatch(scope["path"]):
            return None
        user = _user(scope)
        try:
            roles = None if user is None else self._passwords.roles(*user)
        except ConfigError as error:
            _log.error("nobody can log in: %s", error)
            roles = None
        if roles is None:
            return ApiError(UNAUTHORIZED, "Unauthorized")
        if self._roles is not None and not self._roles & roles:
            return ApiError(FORBIDDEN, "Forbidden")
        return None


def with_login(app: ASGIApp, values: Mapping[str, Any]) -> ASGIApp:
    """The application, behind a login if the properties ask for one. Raises ConfigError."""
    passwords = of_properties(values, PASSWORD_FILE)
    return app if passwords is None else Login(app, passwords, values)


def _user(scope: Scope) -> tuple[str, str] | None:
    """Name and password of a request."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    return basic_credentials(given)


def _words(value: Any) -> list[str]:
    return [word.strip() for word in str(value or "").split(",") if word.strip()]


def _pattern(path: str) -> str:
    """A path in which `*` stands for anything."""
    return ".*".join(map(re.escape, path.split("*")))
