"""The console's HTTP server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from barnabas.base.descriptors import raise_limit
from barnabas.base.ending import stop_on_signals
from barnabas.base.tls.contexts import configured_server
from barnabas.console.config import USERS_FILE, ConsoleConfig
from barnabas.console.oidc.logins import Logins
from barnabas.console.oidc.provider import Provider
from barnabas.console.oidc.settings import CALLBACK
from barnabas.console.pages.application import HEADERS, Application
from barnabas.console.services.all import open_services
from barnabas.web.crowd import Crowd
from barnabas.web.guard import Refusal
from barnabas.web.listening import bind_all
from barnabas.web.passwords import Passwords
from barnabas.web.protection import Protection, Refused, Rules
from barnabas.web.server import WebServer
from barnabas.web.watch import Watch

REQUESTS_MAX = 256
"""Requests that are answered at once, streams among them."""
SWITCH_S = 0.001
"""The interpreter's switch interval: how long a thread runs before others get a turn. With Python's
default of 5 ms, the event loop would wait that long for each running search, again and again."""
_STATUS = {
    Refusal.OTHER_HOST: 421,
    Refusal.OTHER_ORIGIN: 403,
    Refusal.NO_METHOD: 405,
    Refusal.SLOW_BODY: 408,
}


class ConsoleServer:
    """Start it and stop it once."""

    def __init__(self, config: ConsoleConfig) -> None:
        """Bind the listeners. Raises CannotListenError, ConfigError."""
        accounts = Passwords(config.users_file, USERS_FILE) if config.users_file else None
        tls = configured_server(config) if config.has_tls else None
        bound = bind_all(config.listeners)
        self.listeners = [one.listener for one in bound]
        """The addresses that it listens on, with the ports that were chosen."""
        try:
            self._services = open_services(config)
            self._application = Application(
                config, self._services, accounts, _logins(config, str(self.listeners[0]))
            )
            crowd = Crowd()
            rules = Rules(
                own_names=() if config.is_on_loopback else None,
                watch=Watch(self._application.metrics, self._application.not_ready, crowd),
                requests_max=REQUESTS_MAX,
                linked_paths=("/", CALLBACK),
                headers=HEADERS,
            )
            app = Protection(self._application.app, _refused, rules)
            self._web = WebServer(app, bound, crowd, tls=tls)
        except BaseException:
            for one in bound:
                one.close()
            raise

    async def start(self) -> None:
        """Serve. Raises CannotListenError."""
        await self._web.start()

    async def stop(self) -> None:
        """End streams, answer what was asked, and let go of the services."""
        await self._web.stop()
        self._application.close()
        await asyncio.to_thread(self._services.close)


def run_console(
    config: ConsoleConfig, on_ready: Callable[[ConsoleServer], None] | None = None
) -> int:
    """Run until SIGTERM, SIGINT or SIGHUP; returns the exit code.

    Raises CannotListenError and ConfigError if it cannot start.
    """
    raise_limit()
    sys.setswitchinterval(SWITCH_S)
    return asyncio.run(_run(config, on_ready))


async def _run(config: ConsoleConfig, on_ready: Callable[[ConsoleServer], None] | None) -> int:
    stopping = asyncio.Event()
    stop_on_signals(stopping, "second signal: the console ends at once")
    server = ConsoleServer(config)
    await server.start()
    if on_ready is not None:
        on_ready(server)
    try:
        await stopping.wait()
    finally:
        await server.stop()
    return 0


def _logins(config: ConsoleConfig, address: str) -> Logins | None:
    """The logins by an identity provider, which sends browsers back to the console."""
    if config.oidc is None:
        return None
    return Logins(Provider(config.oidc), config.oidc.redirect_uri or f"{address}{CALLBACK}")


def _refused(refusal: Refusal) -> Refused:
    text = f'{{"error":"{refusal.value}","kind":"refused"}}'
    return Refused(_STATUS.get(refusal, 503), text.encode(), b"application/json")
