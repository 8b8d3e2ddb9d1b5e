"""How the server's Kafka clients log in: librdkafka's settings, and those of Spark's connector.

All of them follow from `security.protocol`, `sasl.*` and `ssl.*`, as they stand or with
`ksql.streams.` before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.base.config.errors import ConfigError
from barnabas.base.jaas import jaas_options
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.sql.server.security.stores import is_pkcs12, trusted_pem

PREFIXES = ("ksql.streams.", "")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_OWN_NAMES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
"""librdkafka's names, which are taken too."""
_ALGORITHM = "ssl.endpoint.identification.algorithm"


def librdkafka(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of confluent-kafka's clients. Raises ConfigError."""
    keys = PropertyKeys(values, PREFIXES)
    protocol = _protocol(keys)
    found: dict[str, Any] = {}
    if protocol != "PLAINTEXT":
        found["security.protocol"] = protocol
    if "SASL" in protocol:
        mechanism, user, password = _login(keys)
        found |= {
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
    if "SSL" not in protocol:
        return found
    if keys.find(_ALGORITHM) == "":
        found[_ALGORITHM] = "none"
    found |= {name: keys.get_str(name) for name in _OWN_NAMES if keys.get_str(name)}
    trusted = trusted_pem(keys)
    if trusted is not None:
        found["ssl.ca.pem"] = trusted
    return found | _own_certificate(keys)


def _own_certificate(keys: PropertyKeys) -> dict[str, Any]:
    found: dict[str, Any] = {}
    location = keys.get_str("ssl.keystore.location")
    if location and is_pkcs12(keys):
        found["ssl.keystore.location"] = location
        found["ssl.keystore.password"] = keys.get_str("ssl.keystore.password")
        return found
    if location:
        found["ssl.certificate.location"] = found["ssl.key.location"] = location
    if keys.get_str("ssl.keystore.key"):
        found["ssl.key.pem"] = keys.get_str("ssl.keystore.key")
        found["ssl.certificate.pem"] = keys.get_str("ssl.keystore.certificate.chain")
    if keys.get_str("ssl.key.password"):
        found["ssl.key.password"] = keys.get_str("ssl.key.password")
    return found


def java(values: Mapping[str, Any]) -> dict[str, str]:
    """Settings of Kafka's Java clients, which Spark reads topics with. Raises ConfigError.

    A keystore has to lie at the same place on every machine of Spark's.
    """
    keys = PropertyKeys(values, PREFIXES)
    protocol = _protocol(keys)
    if protocol == "PLAINTEXT":
        return {}
    found = {"security.protocol": protocol}
    if "SASL" in protocol:
        mechanism, user, password = _login(keys)
        given = keys.get_str("sasl.jaas.config")
        found["sasl.mechanism"] = mechanism
        found["sasl.jaas.config"] = given or (
            f'{MECHANISMS[mechanism]} required username="{_quoted(user)}" '
            f'password="{_quoted(password)}";'
        )
    if "SSL" not in protocol:
        return found
    algorithm = keys.find(_ALGORITHM)
    if algorithm is not None:
        found[_ALGORITHM] = algorithm
    trusted = trusted_pem(keys)
    if trusted is not None:
        found["ssl.truststore.type"] = "PEM"
        found["ssl.truststore.certificates"] = _certificates(trusted)
    location = keys.get_str("ssl.keystore.location")
    if location:
        found["ssl.keystore.location"] = location
        found["ssl.keystore.type"] = "PKCS12" if is_pkcs12(keys) else "PEM"
        for name in ("ssl.keystore.password", "ssl.key.password"):
            if keys.get_str(name):
                found[name] = keys.get_str(name)
    return found


def _certificates(text: str) -> str:
    """Java takes nothing between and around certificates."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    parts = [part.split(end)[0] for part in text.split(begin)[1:]]
    return "\n".join(f"{begin}{part}{end}" for part in parts)


def _protocol(keys: PropertyKeys) -> str:
    found = (keys.get_str("security.protocol") or "PLAINTEXT").upper()
    if found not in PROTOCOLS:
        raise ConfigError(
            keys.key("security.protocol"), f"{found} is none of {', '.join(PROTOCOLS)}"
        )
    return found


def _login(keys: PropertyKeys) -> tuple[str, str, str]:
    """Mechanism, user and password."""
    mechanism = (keys.get_str("sasl.mechanism") or "GSSAPI").upper()
    if mechanism not in MECHANISMS:
        raise ConfigError(
            keys.key("sasl.mechanism"),
            f"{mechanism} is not served; set one of {', '.join(MECHANISMS)}",
        )
    options = jaas_options(keys.get_str("sasl.jaas.config"))
    user = options.get("username") or keys.get_str("sasl.username")
    password = options.get("password") or keys.get_str("sasl.password")
    if not user or not password:
        raise ConfigError(
            keys.key("sasl.jaas.config"),
            'has no username and password; it is written <module> required username="…" '
            'password="…";',
        )
    return mechanism, user, password


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
