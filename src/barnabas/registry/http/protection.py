"""Who may use the REST interface: pages of other origins may not, nor who cannot log in.

`authentication.method=BASIC` asks for a name and password of the file that Jetty's
PropertyFileLoginModule reads, as Confluent's registry does. What it refuses looks as Jetty's
answers do; followers pass a client's login on to the leader.
"""

import logging
from collections.abc import Callable
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.base.config.errors import ConfigError
from barnabas.registry.config import RegistryConfig
from barnabas.registry.errors import RegistryError
from barnabas.registry.http.answers import refusal
from barnabas.registry.http.negotiation import V1
from barnabas.web.bodies import BodyBudget, SlowBodyError, TooManyBodiesError
from barnabas.web.guard import (
    basic_credentials,
    is_meant_for_loopback,
    may_ask,
    only_loopback,
)
from barnabas.web.passwords import REALM, ROLES, SKIP_PATHS, Passwords, of_properties

PASSWORD_FILE = "barnabas.registry.password.file"
UNAUTHORIZED, FORBIDDEN, TIMED_OUT, MISDIRECTED, BUSY = 401, 403, 408, 421, 503
_log = logging.getLogger(__name__)


class Protection:
    """Lets requests through that may be answered."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        passwords: Passwords | None = None,
        realm: str = "",
        roles: frozenset[str] = frozenset({"*"}),
        open_paths: frozenset[str] = frozenset(),
        origins: frozenset[str] = frozenset(),
        own_names: frozenset[str] | None = None,
    ) -> None:
        """`own_names` are names of a server on loopback; None: it is not on loopback alone."""
        self._app = app
        self._passwords = passwords
        shown = realm.replace("\\", "").replace('"', "") or "schema-registry"
        self._challenge = f'Basic realm="{shown}"'.encode("latin-1", "replace")
        self._roles = roles
        self._open_paths = open_paths
        self._origins = origins
        self._own_names = own_names
        self._bodies = BodyBudget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                sealed = (b"x-content-type-options", b"nosniff")
                message = {**message, "headers": [*message["headers"], sealed]}
            await send(message)

        fault = self._fault(scope)
        if fault is None and scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send_sealed)
            return
        if fault is None:
            try:
                taken = await self._bodies.take(receive)
            except SlowBodyError as error:
                fault = RegistryError(TIMED_OUT, str(error))
            except TooManyBodiesError as error:
                fault = RegistryError(BUSY, str(error))
            else:
                try:
                    await self._app(scope, taken.receive, send_sealed)
                finally:
                    taken.release()
                return
        answer = refusal(fault)
        headers = [(b"content-type", V1), (b"content-length", b"%d" % len(answer.body))]
        if fault.status == UNAUTHORIZED:
            headers.append((b"www-authenticate", self._challenge))
        start = {"type": "http.response.start", "status": fault.status, "headers": headers}
        await send_sealed(start)
        body = b"" if scope["method"] == "HEAD" else answer.body
        await send({"type": "http.response.body", "body": body})

    def _fault(self, scope: Scope) -> RegistryError | None:
        host, origin, site = b"", None, None
        logins = []
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
            elif name == b"authorization":
                logins.append(value)
        if self._own_names is not None and not is_meant_for_loopback(host, self._own_names):
            return RegistryError(MISDIRECTED, "the request is for another host")
        if not may_ask(origin, site, host, self._origins):
            return RegistryError(FORBIDDEN, "requests of other origins are not allowed")
        if scope["method"] == "OPTIONS" and origin is not None:
            return None  # a browser asks what a page may do, and logs in after that
        return self._login_fault(scope["path"], logins)

    def _login_fault(self, path: str, logins: list[bytes]) -> RegistryError | None:
        if self._passwords is None or path in self._open_paths:
            return None
        user = basic_credentials(logins)
        try:
            roles = None if user is None else self._passwords.roles(*user)
        except ConfigError as error:
            _log.error("nobody can log in: %s", error)
            roles = None
        if roles is None:
            return RegistryError(UNAUTHORIZED, "Unauthorized")
        if not {"*", "**"} & self._roles and not self._roles & roles:
            return RegistryError(FORBIDDEN, "Forbidden")
        return None


def protection(config: RegistryConfig, origins: tuple[str, ...]) -> Callable[[ASGIApp], Protection]:
    """What protects an application as the server's file asks. Raises ConfigError."""
    hosts = [listener.host for listener in config.listeners]
    own_names = frozenset({config.get_str("host.name").lower()}) if only_loopback(hosts) else None
    return partial(
        Protection,
        passwords=of_properties(config.originals, PASSWORD_FILE),
        realm=config.get_str(REALM),
        roles=frozenset(config.get_list(ROLES)),
        open_paths=frozenset(config.get_list(SKIP_PATHS)),
        origins=frozenset(origins),
        own_names=own_names,
    )
