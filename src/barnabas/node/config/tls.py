"""TLS of a node's listeners, as Kafka's `ssl.…` keys describe it.

A `TlsSide` is one side of one listener: what the listener accepts, or what the node's own
connections to it are made with. It follows its files: `context()` returns a context made of their
present contents. Files that cannot be used are logged, and the context before them stays in use.
"""

import logging
import os
import ssl
from dataclasses import dataclass
from typing import Final

from barnabas.base.errors import ConfigError
from barnabas.base.tls.contexts import (
    CLIENT_AUTH,
    choose_suites,
    choose_versions,
    load_key,
    new_context,
    trust,
)
from barnabas.base.tls.key_stores import own_key, store_files, trusted_certificates
from barnabas.base.tls.x509 import Certificate
from barnabas.node.config.definitions import BROKER_KEYS
from barnabas.node.config.listeners import ListenerConfig
from barnabas.node.config.node_config import NodeConfig

HANDSHAKE_TIMEOUT_MS: Final = 30_000
ENCRYPTED_PROTOCOLS: Final = ("SSL", "SASL_SSL")
TLS_KEYS: Final = tuple(name for name in BROKER_KEYS if name.startswith("ssl."))

telemetry = logging.getLogger(__name__)


class ListenerKeys:
    """The keys of one listener: its own ones over the common ones."""

    def __init__(self, config: NodeConfig, listener_name: str) -> None:
        self._config = config
        self._listener_name = listener_name
        self.own_prefix = f"listener.name.{listener_name.lower()}."

    def get_str(self, name: str) -> str:
        value = self._config.listener_value(self._listener_name, name)
        return "" if value is None else str(value)

    def get_list(self, name: str) -> list[str]:
        return list(self._config.listener_value(self._listener_name, name) or ())

    def get_bool(self, name: str) -> bool:
        """The value of a BOOLEAN key."""
        return bool(self._config.listener_value(self._listener_name, name))

    def has_own(self, name: str) -> bool:
        """Return whether the listener has a value that is not the common one."""
        return self.own_prefix + name in self._config.originals

    def values(self) -> dict[str, object]:
        """All of TLS that holds here."""
        return {name: self._config.listener_value(self._listener_name, name) for name in TLS_KEYS}


@dataclass(frozen=True, slots=True)
class _Made:
    """A context, and what it was made of."""

    context: ssl.SSLContext
    certificate: Certificate | None
    values: dict[str, object]
    files: tuple[tuple[str, int, int, int] | str, ...]


class TlsSide:
    """Implements `network.TlsTerms` for a listener, or for connections to it."""

    def __init__(
        self,
        config: NodeConfig,
        listener_name: str,
        security_protocol: str,
        *,
        is_server: bool,
        handshake_timeout_ms: int = HANDSHAKE_TIMEOUT_MS,
    ) -> None:
        """Raises ConfigError where the keys cannot be used."""
        self.handshake_timeout_ms = handshake_timeout_ms
        self.listener_name = listener_name
        self.is_server = is_server
        self._security_protocol = security_protocol
        self._keys = ListenerKeys(config, listener_name)
        self._refused: object = None
        """The status of files that could not be used, so that each is logged once."""
        self._made = self._make()

    @property
    def certificate(self) -> Certificate | None:
        """The certificate for new connections; None for a client without one."""
        return self._made.certificate

    def context(self) -> ssl.SSLContext:
        self.refresh()
        return self._made.context

    def follow(self, config: NodeConfig) -> None:
        """Use another configuration from now on, if it can be used."""
        keys = ListenerKeys(config, self.listener_name)
        if keys.values() != self._made.values:
            self._keys = keys
            self._remake("its configuration changed")

    def refresh(self) -> None:
        """Read the files again if they have changed."""
        files = _state_of(store_files(self._keys))
        if files not in (self._made.files, self._refused):
            self._remake("its files changed")

    def _remake(self, cause: str) -> None:
        files = _state_of(store_files(self._keys))
        before = self._made
        try:
            made = self._make()
            if before.certificate is not None and made.certificate is not None:
                ensure_compatible(before.certificate, made.certificate, self._keys)
            self._made = made
        except ConfigError as error:
            self._refused = files
            telemetry.error(
                "listener %s keeps its certificate, though %s: %s", self.listener_name, cause, error
            )
            return
        self._refused = None
        certificate = self._made.certificate
        if self.is_server and certificate is not None:
            telemetry.info(
                "listener %s has a new certificate, since %s: %s, until %s",
                self.listener_name,
                cause,
                certificate.subject,
                certificate.not_after.isoformat(),
            )

    def _make(self) -> _Made:
        keys = self._keys
        files = _state_of(store_files(keys))  # first, so that a concurrent change is noticed
        context, certificate = make_context(
            keys, is_server=self.is_server, security_protocol=self._security_protocol
        )
        return _Made(context, certificate, keys.values(), files)


def listening_tls(config: NodeConfig, listener: ListenerConfig) -> TlsSide | None:
    """The TLS context of a listener, None without TLS. Raises ConfigError."""
    protocol = listener.security_protocol
    if protocol not in ENCRYPTED_PROTOCOLS:
        return None
    return TlsSide(config, listener.name, protocol, is_server=True)


def dialling_tls(config: NodeConfig, listener_name: str) -> TlsSide | None:
    """The TLS context for connections to this listener of other nodes. Raises ConfigError."""
    protocol = config.protocol_map.get(listener_name, "PLAINTEXT")
    if protocol not in ENCRYPTED_PROTOCOLS:
        return None
    return TlsSide(config, listener_name, protocol, is_server=False)


def make_context(
    keys: ListenerKeys, *, is_server: bool, security_protocol: str
) -> tuple[ssl.SSLContext, Certificate | None]:
    """A context, and the certificate that it shows. Raises ConfigError."""
    context = new_context(is_server=is_server)
    choose_versions(context, keys)
    choose_suites(context, keys)
    own = own_key(keys)
    certificate = None
    if own is not None:
        certificate = load_key(context, own, "ssl.keystore.location")
    elif is_server:
        raise ConfigError(
            f"{keys.own_prefix}ssl.keystore.location",
            "a key store must be set for a listener that speaks TLS",
        )
    if is_server:
        context.verify_mode = _client_auth(keys, security_protocol)
    else:
        context.check_hostname = keys.get_str("ssl.endpoint.identification.algorithm") != ""
    if context.verify_mode != ssl.CERT_NONE:
        trust(context, trusted_certificates(keys))
    return context, certificate


def ensure_compatible(old: Certificate, new: Certificate, keys: ListenerKeys) -> None:
    """Raises ConfigError where a listener would bear another name than it may."""
    if not keys.get_bool("ssl.allow.dn.changes") and old.subject != new.subject:
        raise ConfigError(
            f"{keys.own_prefix}ssl.keystore.location",
            f"Keystore DistinguishedName does not match:  existing={{DN={old.subject}}}, "
            f"new={{DN={new.subject}}}",
        )
    if not keys.get_bool("ssl.allow.san.changes"):
        missing = old.alternative_names - new.alternative_names
        if missing:
            raise ConfigError(
                f"{keys.own_prefix}ssl.keystore.location",
                f"Keystore SubjectAltNames do not match: the new one lacks {sorted(missing)}",
            )


def _client_auth(keys: ListenerKeys, security_protocol: str) -> ssl.VerifyMode:
    """Logins by SASL ask for a certificate too only where the listener itself says so."""
    key = "ssl.client.auth"
    wanted = keys.get_str(key).lower() or "none"
    if security_protocol == "SASL_SSL" and not keys.has_own(key) and wanted != "none":
        telemetry.warning(
            "%s=%s applies to SSL listeners only; set %s%s to ask for certificates there too",
            key,
            wanted,
            keys.own_prefix,
            key,
        )
        return ssl.CERT_NONE
    return CLIENT_AUTH[wanted]


def _state_of(paths: list[str]) -> tuple[tuple[str, int, int, int] | str, ...]:
    """The part of a file's status that changes when it is rewritten."""
    states: list[tuple[str, int, int, int] | str] = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            states.append(path)
        else:
            states.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(states)
