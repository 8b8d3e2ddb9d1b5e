"""Runs a worker: its herder behind its listeners, until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx

from barnabas.base.descriptors import raise_limit
from barnabas.connect.config.providers import ConfigProviders
from barnabas.connect.daemon_threads import DaemonThreads
from barnabas.connect.rest import settings as rest_settings
from barnabas.connect.rest.app import RestApp, protected
from barnabas.connect.rest.bodies import Route
from barnabas.connect.rest.connectors import Resources
from barnabas.connect.worker.connector_files import ConnectorFile
from barnabas.connect.worker.herder import Herder
from barnabas.connect.worker.making import make_herder
from barnabas.connect.worker.secrets import Secrets
from barnabas.connect.worker.settings import check_settings, is_distributed
from barnabas.schemas.data.errors import ConnectError
from barnabas.web.crowd import Crowd
from barnabas.web.guard import only_loopback
from barnabas.web.listening import BoundListener, ListenAddress, bind_all
from barnabas.web.server import WebServer
from barnabas.web.watch import Watch

_log = logging.getLogger(__name__)
CONNECTIONS_MAX = 2_000
THREADS_MAX = 3
Ready = Callable[["ConnectServer"], None]


class ConnectServer:
    """A worker. `listeners`: where it listens, with the ports that were chosen.

    Raises ConnectError, CannotListenError.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        files: Sequence[ConnectorFile] = (),
    ) -> None:
        self._providers = ConfigProviders.of_worker(settings)
        self._secrets = resolve = Secrets(self._providers)
        settings = resolve(settings)
        check_settings(settings)
        self.settings, self._files = dict(settings), files
        wanted = rest_settings.listeners(settings)
        admin = rest_settings.admin_listeners(settings)
        self._passwords = rest_settings.passwords(settings)
        self._headers = rest_settings.response_headers(settings)
        own_tls = self._tls_of(wanted, rest_settings.REGULAR)
        admin_tls = self._tls_of(admin or (), rest_settings.ADMIN)
        # Workers of a group may listen differently: what it takes to ask one by https may be set.
        knows_tls = any(one.is_tls for one in wanted) or any(map(_is_of_tls, settings))
        verify = rest_settings.client_tls(settings) if knows_tls else True
        self._crowd = Crowd(CONNECTIONS_MAX)
        self._threads = DaemonThreads(THREADS_MAX, "connect-server")
        bound = bind_all([*wanted, *(admin or ())])
        own, for_admin = bound[: len(wanted)], bound[len(wanted) :]
        try:
            self.listeners = [one.listener for one in own]
            self.url = rest_settings.advertised_url(settings, self.listeners)
            self._client = httpx.AsyncClient(verify=verify, trust_env=False)
            self.herder: Herder = make_herder(settings, self.url, resolve=resolve, verify=verify)
        except BaseException:
            for one in bound:
                one.close()
            raise
        resources = Resources(self.herder, self.settings)
        self._apps: list[RestApp] = []
        self._servers = [
            self._server(
                [*resources.regular(), *(resources.admin() if admin is None else ())],
                own,
                own_tls,
                self._headers,
                resources.watch(self._crowd),
            )
        ]
        if admin:
            self._servers.append(self._server(resources.admin(), for_admin, admin_tls))

    def _tls_of(self, wanted: Sequence[ListenAddress], prefix: str) -> ssl.SSLContext | None:
        if not any(listener.is_tls for listener in wanted):
            return None
        return rest_settings.listener_tls(self.settings, prefix)

    @property
    def mode(self) -> str:
        """Return distributed or standalone."""
        return "distributed" if is_distributed(self.settings) else "standalone"

    async def run(self, ready: Ready) -> None:
        """Serve until SIGTERM or SIGINT. Raises ConnectError if a connector's file is refused."""
        self._secrets.guard_logs()
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        served = asyncio.gather(*(server.serve(stopping) for server in self._servers))
        try:
            await self._beside(self.herder.start)
            creating = self._beside(self._create_all)
            # A connector may hang in its start, and the worker is to end all the same.
            both: set[asyncio.Future[Any]] = {creating, served}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not creating.cancel():
                creating.result()
                ready(self)
            await served
        finally:
            stopping.set()
            await asyncio.gather(served, return_exceptions=True)
            for app in self._apps:
                app.close()
            await self._beside(self.herder.close)
            await self._client.aclose()
            self._providers.close()
            self._secrets.leave_logs()

    def _beside(self, work: Callable[[], None]) -> asyncio.Future[None]:
        """Run a blocking call on a separate thread."""
        return asyncio.wrap_future(self._threads.submit(work))

    def _server(
        self,
        routes: list[Route],
        bound: Sequence[BoundListener],
        own_tls: ssl.SSLContext | None,
        headers: Sequence[tuple[bytes, bytes]] = (),
        watch: Watch | None = None,
    ) -> WebServer:
        app = RestApp(routes, self._client, self.herder.worker.hide)
        self._apps.append(app)
        guarded = protected(
            app,
            self.settings,
            headers=headers,
            passwords=self._passwords,
            is_on_loopback=only_loopback(one.listener.host for one in bound),
            watch=watch,
        )
        return WebServer(guarded, bound, self._crowd, tls=own_tls, speaks_http2=True)

    def _create_all(self) -> None:
        """The connectors that files describe; one that is refused ends the worker."""
        for file in self._files:
            try:
                self.herder.put(file.name, file.config, file.target, may_replace=False)
            except ConnectError as error:
                text = f"Failed to create connector {file.name}: {error}"
                raise ConnectError(self._secrets.hidden(text)) from error


def _is_of_tls(name: str) -> bool:
    return name.startswith((f"{rest_settings.REGULAR}ssl.", "ssl.truststore.", "ssl.keystore."))


def run_worker(
    settings: Mapping[str, str],
    files: Sequence[ConnectorFile],
    ready: Ready,
) -> int:
    """Run a worker until a signal ends it. Raises ConnectError, CannotListenError."""
    raise_limit()
    server = ConnectServer(settings, files)
    asyncio.run(server.run(ready))
    return 0
