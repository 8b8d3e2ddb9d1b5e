"""What the requests for delegation tokens have in common: who may make them (KIP-48)."""

from typing import Final

from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.security.principal import ANONYMOUS

ERROR_TIMESTAMP_MS: Final = -1
"""In place of every time, as in Kafka, where a request is refused before it is decided."""


def may_ask_for_tokens(context: RequestContext) -> bool:
    """Whether a connection is one over which tokens are handed out.

    Not where anybody could listen in on PLAINTEXT or come as nobody, and not to who logged in by a
    token: then a stolen one would live as long as it is renewed. Source: Kafka's KafkaApis.
    """
    protocol = context.connection.listener.security_protocol
    if protocol == "PLAINTEXT" or client_state(context.connection).is_token:
        return False
    return protocol != "SSL" or context.principal != ANONYMOUS
