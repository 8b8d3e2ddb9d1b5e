"""Simulated clusters in which nodes and clients log in again and again: by SCRAM, and by tokens."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from barnabas.node.net.login import ScramLogin
from barnabas.node.net.oauth.token_login import RefreshSettings, TokenLogin
from barnabas.node.net.oauth.unsecured_login import unsecured_token
from sim.clients import Client
from sim.plan import Plan
from sim.simulation import Simulation

JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="node" password="node-secret";'
)
SECURED = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": JAAS,
    "listener.name.controller.scram-sha-256.sasl.jaas.config": JAAS,
    "connections.max.reauth.ms": "3000",
}
USERS = [
    "SCRAM-SHA-256=[name=node,password=node-secret]",
    "SCRAM-SHA-512=[name=node,password=node-secret]",
    "SCRAM-SHA-256=[name=client,password=client-secret]",
]


class LoginSimulation(Simulation):
    """Plain producers and consumers. Logins end after three seconds and are repeated."""

    scram = USERS

    def __init__(self, plan: Plan) -> None:
        super().__init__(replace(plan, properties={**plan.properties, **SECURED}))

    def _client(self, name: str) -> Client:
        client = super()._client(name)
        draw = partial(nonce, Random(f"{self.plan.seed}/{name}/nonces"))
        client.login = ScramLogin("SCRAM-SHA-256", "client", "client-secret", draw)
        return client


BEARER = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="node" unsecuredLoginLifetimeSeconds="3";'
)
BY_TOKENS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "sasl.mechanism.controller.protocol": "OAUTHBEARER",
    "listener.name.plaintext.oauthbearer.sasl.jaas.config": BEARER,
    "listener.name.controller.oauthbearer.sasl.jaas.config": BEARER,
}


class TokenLoginSimulation(Simulation):
    """Plain producers and consumers. Everybody's token ends after three seconds."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(replace(plan, properties={**plan.properties, **BY_TOKENS}))

    def _client(self, name: str) -> Client:
        client = super()._client(name)
        client.login = TokenLogin(
            lambda: unsecured_token(
                {
                    "unsecuredLoginStringClaim_sub": "client",
                    "unsecuredLoginLifetimeSeconds": "3",
                },
                client.clock.now_ms(),
            ),
            client.clock,
            Random(f"{self.plan.seed}/{name}/tokens"),
            refresh=RefreshSettings(),
            retry_ms=100,
            retry_max_ms=1000,
            extensions={},
            in_thread=False,
        )
        return client


def nonce(random: Random) -> str:
    return random.randbytes(12).hex()
