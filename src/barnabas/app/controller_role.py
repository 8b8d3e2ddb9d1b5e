"""The controller's part of a node: it serves the quorum, brokers and administrators' tools.

`metadata` holds its decisions and the choice of the active controller.
"""

from functools import partial
from random import Random

from barnabas.app.listening import (
    LIMIT_KEYS,
    ListenerCertificates,
    bind_listeners,
    follow_limits,
    server_limits,
)
from barnabas.app.logins import Gates
from barnabas.app.quotas import ListenerQuotas
from barnabas.base.clock import Clock
from barnabas.base.ending import take_all
from barnabas.base.network import Network
from barnabas.node.broker.controller.handlers import CONTROLLER_ROUTES, ControllerServices
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.throttling import EXEMPT_AT_CONTROLLER
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import TLS_KEYS
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.net.request_times import RequestTimes
from barnabas.node.net.request_trace import Tracer
from barnabas.node.net.server import Server
from barnabas.node.security.authorizer import Authorizer


class ControllerRole:
    """A `node.Role`, of a node that plays `controller`."""

    def __init__(
        self,
        *,
        config: NodeConfig,
        clock: Clock,
        network: Network,
        random: Random,
        metadata: MetadataNode,
        authorizer: Authorizer,
        times: RequestTimes | None = None,
    ) -> None:
        """Put together what serves, and bind its listeners. Raises CannotListenError."""
        self._config = config
        self._metadata = metadata
        services = ControllerServices(
            clock=clock,
            random=random,
            cluster_id=metadata.cluster_id,
            node_id=config.node_id,
            metadata=metadata,
            authorizer=authorizer,
        )
        self._dispatcher = Dispatcher(services, CONTROLLER_ROUTES)
        self.server = Server(
            network,
            clock,
            self._dispatcher,
            server_limits(config),
            requests_overlap=True,
            times=times,
        )
        self.quotas = ListenerQuotas(
            config, clock, self.server, self._dispatcher, services, exempt=EXEMPT_AT_CONTROLLER
        )
        self.gates = Gates(
            config=config,
            clock=clock,
            random=random,
            metadata=metadata,
            services=services,
            service=self._dispatcher,
        )
        encrypted = bind_listeners(self.server, config, config.controller_listeners, self.gates)
        self.certificates = ListenerCertificates(clock)
        self.certificates.watch(encrypted)

    def trace_by(self, tracer: Tracer) -> None:
        """Have requests traced from now on."""
        self._dispatcher.tracer = tracer

    async def start(self) -> None:
        """Accept requests; the metadata has been started."""
        self._metadata.on_config(LIMIT_KEYS, partial(follow_limits, self.server))
        self._metadata.on_config(TLS_KEYS, self.certificates.follow)
        self.quotas.load(self._metadata.image)
        self._metadata.mutation_quotas = self.quotas
        self._metadata.add_listener(self.quotas.image_changed)
        self.server.start()

    async def leave(self) -> None:
        """Take no new connections; those that exist still bring the quorum's requests."""
        self.server.close_listeners()

    async def close(self) -> None:
        """Serve nobody any more; the metadata has been stopped."""
        self.certificates.close()
        self.server.close()
        await take_all(self.gates.close, self._dispatcher.close)

    async def abandon(self) -> None:
        """Let go of what `leave` was not called for."""
        await self.close()
