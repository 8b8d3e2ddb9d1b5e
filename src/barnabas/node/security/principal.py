"""Principals: who sends the requests of a connection.

Clients without credentials are `ANONYMOUS`, as on Kafka's PLAINTEXT listeners. What authenticates
(TLS
certificates, SASL) tells the connection's state, and requests carry the principal from there.
"""

from typing import Final, NamedTuple

from barnabas.protocol import well_known as principals


class Principal(NamedTuple):
    """A user, or another kind of client. As text it is `User:alice`, as Kafka writes it."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


USER: Final = "User"
ANONYMOUS: Final = Principal(*principals.ANONYMOUS.split(":"))
