"""Checks of a new certificate or trust store for a listener that is serving.

Source: Kafka's SslFactory (CertificateEntries, SslEngineValidator) and DynamicListenerConfig.
"""

import ssl

from barnabas.base.errors import ConfigError
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import (
    ENCRYPTED_PROTOCOLS,
    TLS_KEYS,
    ListenerKeys,
    ensure_compatible,
    make_context,
)

ROUNDS_MAX = 10
"""Of a handshake with ourselves; three are enough."""


def check_tls_change(old: NodeConfig, new: NodeConfig) -> None:
    """Try what listeners would get. Raises ConfigError for what cannot be used."""
    if old.values_of(TLS_KEYS) == new.values_of(TLS_KEYS):
        return
    for listener in new.listeners:
        protocol = listener.security_protocol
        if protocol not in ENCRYPTED_PROTOCOLS:
            continue
        before, after = ListenerKeys(old, listener.name), ListenerKeys(new, listener.name)
        if before.values() == after.values():
            continue
        if not _has_truststore(before) and _has_truststore(after):
            raise ConfigError(
                f"{after.own_prefix}ssl.truststore.location",
                "a listener that had no trust store cannot get one while it serves",
            )
        context, certificate = make_context(after, is_server=True, security_protocol=protocol)
        _, used = make_context(before, is_server=True, security_protocol=protocol)
        if used is not None and certificate is not None:
            ensure_compatible(used, certificate, after)
        if listener.name == new.inter_broker_listener_name:
            client, _ = make_context(after, is_server=False, security_protocol=protocol)
            _check_own_trust(context, client, after)


def _has_truststore(keys: ListenerKeys) -> bool:
    return bool(
        keys.get_str("ssl.truststore.location") or keys.get_str("ssl.truststore.certificates")
    )


def _check_own_trust(server: ssl.SSLContext, client: ssl.SSLContext, keys: ListenerKeys) -> None:
    """Shake hands with ourselves, as other brokers will with us."""
    client.check_hostname = False
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    try:
        for _ in range(ROUNDS_MAX):
            waiting = 0
            for end in ends:
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    waiting += 1
            if not waiting:
                return
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason
        raise ConfigError(
            f"{keys.own_prefix}ssl.keystore.location",
            f"the brokers would not trust each other: {reason}",
        ) from None
