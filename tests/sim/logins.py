"""A simulated cluster in which nodes and clients log in by SCRAM, again and again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from barnabas.net.login import ScramLogin
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
        nonce = partial(_nonce, Random(f"{self.plan.seed}/{name}/nonces"))
        client.login = ScramLogin("SCRAM-SHA-256", "client", "client-secret", nonce)
        return client


def _nonce(random: Random) -> str:
    return random.randbytes(12).hex()
