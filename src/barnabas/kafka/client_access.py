"""How our own connections reach the brokers that a librdkafka client is configured for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from barnabas.base.scram import HASHES
from barnabas.base.tls.key_stores import own_key
from barnabas.kafka.wire import Access, AccessError

_TRUE: Final = ("true", "t", "1", "yes")
_SYSTEM_STORE: Final = "probe"
_TIMEOUT_SECONDS: Final = 30.0


def is_true(value: object) -> bool:
    """Whether a setting of librdkafka's is on."""
    return str(value).lower() in _TRUE


def access_of(settings: Mapping[str, Any]) -> Access:
    """Return the brokers, TLS and login that librdkafka's settings name.

    Raises AccessError for a login that our connections do not have: they have PLAIN and SCRAM.
    """
    protocol = str(settings.get("security.protocol", "PLAINTEXT")).upper()
    mechanism = None
    if protocol.startswith("SASL"):
        given = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
        mechanism = str(given).upper()
        if mechanism not in ("PLAIN", *HASHES):
            raise AccessError(
                f"records with the timestamp 0 cannot be written over SASL {mechanism}: "
                f"log in with PLAIN or {' or '.join(HASHES)}"
            )
    certificates = _Settings(settings)
    authority = certificates.get_str("ssl.ca.location") or None
    algorithm = certificates.get_str("ssl.endpoint.identification.algorithm") or "https"
    return Access(
        str(settings.get("bootstrap.servers") or settings.get("metadata.broker.list") or ""),
        has_tls=protocol.endswith("SSL"),
        ca_path=None if authority == _SYSTEM_STORE else authority,
        ca_pem=certificates.get_str("ssl.ca.pem") or None,
        certificate_path=certificates.get_str("ssl.certificate.location") or None,
        key_path=certificates.get_str("ssl.key.location") or None,
        own_pem=_own_pem(certificates),
        key_password=_key_password(certificates),
        checks_host=algorithm.lower() == "https",
        checks_certificate=is_true(settings.get("enable.ssl.certificate.verification", True)),
        mechanism=mechanism,
        user=str(settings.get("sasl.username", "")),
        password=str(settings.get("sasl.password", "")),
        timeout_seconds=_TIMEOUT_SECONDS,
    )


class _Settings:
    """Settings by name, empty where they are not set."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings

    def get_str(self, name: str) -> str:
        """Return a value as text."""
        value = self._settings.get(name)
        return "" if value is None else str(value)


def _own_pem(settings: _Settings) -> str | None:
    key, chain = settings.get_str("ssl.key.pem"), settings.get_str("ssl.certificate.pem")
    if key or chain:
        return f"{key}{os.linesep}{chain}"
    if settings.get_str("ssl.keystore.location"):  # librdkafka's are PKCS 12
        pair = own_key(settings)
        return None if pair is None else pair.pem
    return None


def _key_password(settings: _Settings) -> str | None:
    if settings.get_str("ssl.keystore.location"):
        pair = own_key(settings)
        return None if pair is None else pair.password or None
    return settings.get_str("ssl.key.password") or None
