"""The gates of a node's SASL listeners, put together from its configuration and its metadata."""

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from barnabas.base.clock import Clock
from barnabas.node.broker.apis.cluster import ApiVersionsServices, handle_api_versions
from barnabas.node.broker.login.gate import FIGURES, ListenerLogins
from barnabas.node.config.listeners import ListenerConfig
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.sasl import MAX_REAUTH_KEY, mechanism_value, uses_sasl
from barnabas.node.metadata.delegation_tokens import token_secret
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.net.connection import Gate, Service
from barnabas.node.security.delegation_tokens import TokenLogins
from barnabas.node.security.quotas.client_quotas import Figure
from barnabas.node.security.sasl.mechanisms import Ingredients, make_mechanisms

if TYPE_CHECKING:
    from barnabas.base.oauth.bearer import Validate
    from barnabas.node.security.bearer_tokens import BearerTokens

MAX_RECEIVE_KEY = "sasl.server.max.receive.size"
FAILURE_DELAY_KEY = "connection.failed.authentication.delay.ms"


class Gates:
    """Makes the gates of one role's listeners."""

    def __init__(
        self,
        *,
        config: NodeConfig,
        clock: Clock,
        random: Random,
        metadata: MetadataNode,
        services: ApiVersionsServices,
        service: Service,
    ) -> None:
        """`service` answers who is in, with `services`."""
        self._config = config
        self._clock = clock
        self._random = random
        self._metadata = metadata
        self._services = services
        self._service = service
        self._logins: list[ListenerLogins] = []
        self._bearer_tokens: BearerTokens | None = None
        self._token_logins = TokenLogins(
            token_secret(config), lambda: metadata.image, clock, random.randbytes
        )

    def of(self, listener: ListenerConfig) -> Gate | None:
        """Return the login gate of a listener; None if its clients do not log in.

        Raises ConfigError.
        """
        config, name = self._config, listener.name
        if not uses_sasl(config, name):
            return None
        mechanisms = make_mechanisms(
            Ingredients(
                config,
                name,
                self._clock,
                self._random.randbytes,
                self._metadata.scram.find,
                self._token_logins.credential,
                any_credential=self._metadata.scram.first,
                bearer=self._validator,
            )
        )
        logins = ListenerLogins(
            listener_name=name,
            clock=self._clock,
            mechanisms=mechanisms,
            service=self._service,
            answer_versions=partial(handle_api_versions, self._services),
            failure_delay_ms=config.get_int(FAILURE_DELAY_KEY),
            reauthentication_ms={
                mechanism: mechanism_value(config, name, mechanism, MAX_REAUTH_KEY)
                for mechanism in mechanisms
            },
        )
        self._logins.append(logins)
        return Gate(logins, config.listener_value(name, MAX_RECEIVE_KEY))

    def figures(self) -> Iterator[Figure]:
        """Numbers of logins and failed logins, under the names of Kafka's metrics."""
        for logins in self._logins:
            tags = {"listener": logins.listener_name}
            for name in FIGURES:
                yield Figure("socket-server-metrics", tags, name, logins.counts[name])

    def _validator(self, listener_name: str) -> "Validate":
        """The function that checks the bearer tokens of a listener. Raises ConfigError."""
        from barnabas.node.security.bearer_tokens import BearerTokens  # rarely needed

        if self._bearer_tokens is None:
            self._bearer_tokens = BearerTokens(self._config, self._clock, self._random)
        return self._bearer_tokens.validator(listener_name)

    async def close(self) -> None:
        """Nobody logs in any more."""
        if self._bearer_tokens is not None:
            await self._bearer_tokens.close()
