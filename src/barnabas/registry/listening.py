"""uvicorn behind an acceptor that bounds how many connections there are."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import uvicorn

from barnabas.base.descriptors import DescriptorReserve
from barnabas.registry.connection import Connection
from barnabas.web.accepting import Acceptor
from barnabas.web.crowd import Crowd, Place


class BoundedServer(uvicorn.Server):
    """Serves sockets that are bound. Signals are the business of whoever runs it."""

    def __init__(
        self, config: uvicorn.Config, crowd: Crowd, reserve: DescriptorReserve | None = None
    ) -> None:
        super().__init__(config)
        self.up = asyncio.Event()
        self._crowd = crowd
        self._reserve = reserve

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        config, self.servers = self.config, []
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise SystemExit("the server did not start; its log says why")
        tls = config.ssl if isinstance(config.ssl, ssl.SSLContext) else None
        for listening in sockets or ():
            listening.listen(config.backlog)
            self.servers.append(
                Acceptor(listening, self._speak, self._crowd, tls=tls, reserve=self._reserve)  # type: ignore[arg-type]  # has what uvicorn uses of a server
            )
        self.started = True
        self.up.set()

    def _speak(self, place: Place) -> Connection:
        return Connection(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            place=place,
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing."""
        yield
