"""The names of settings for connections of clients, and lookups by these names."""

from __future__ import annotations

from typing import Final, Protocol

from barnabas.base.scram import HASHES
from barnabas.base.tls.contexts import PropertyKeys

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", *HASHES)
"""Those that log in with a name and a password, which every client has."""
SYSTEM_STORE: Final = "probe"
"""librdkafka's word for the authorities of the system, as `ssl.ca.location`."""
SECURITY_PREFIXES: Final = ("security.protocol", "sasl.", "ssl.")
NAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
JAAS: Final = "sasl.jaas.config"
KEYSTORE: Final = "ssl.keystore.location"
TRUSTED: Final = ("ssl.ca.location", "ssl.ca.pem")
OWN: Final = (
    *("ssl.certificate.location", "ssl.key.location"),
    *("ssl.certificate.pem", "ssl.key.pem"),
)
LIBRDKAFKA_FILES: Final = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
_JAVA_STORES: Final = frozenset(
    {
        *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password"),
        *("ssl.truststore.certificates", "ssl.keystore.type", KEYSTORE, "ssl.keystore.password"),
        *("ssl.keystore.key", "ssl.keystore.certificate.chain"),
    }
)
_LOGIN: Final = frozenset(
    {JAAS, "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"}
)
SECURITY_NAMES: Final = frozenset(
    {"security.protocol", "ssl.key.password", NAME_CHECK, *TRUSTED, *OWN} | _JAVA_STORES | _LOGIN
)
"""The settings that `Security` reads."""
JAVA_SECURITY: Final = frozenset(
    {
        *("sasl.client.callback.handler.class", "sasl.login.callback.handler.class"),
        *("sasl.login.class", "security.providers", "ssl.client.auth"),
        *("ssl.client.authentication", "ssl.enabled.protocols"),
        *("ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.protocol", "ssl.provider"),
        *("ssl.secure.random.implementation", "ssl.trustmanager.algorithm"),
    }
)


def is_true(value: object) -> bool:
    """Return whether a setting of librdkafka's is on."""
    return str(value).lower() in ("true", "t", "1", "yes")


def is_false(value: object) -> bool:
    """Return whether a setting of librdkafka's is off."""
    return str(value).lower() in ("false", "f", "0", "no")


class SettingNames(Protocol):
    """Settings by Java's names, without their prefix."""

    def find(self, name: str) -> str | None:
        """The value, which may be empty; None where it is not set."""

    def key(self, name: str) -> str:
        """The name as it is written, for messages."""


def other_settings(keys: PropertyKeys, prefix: str) -> dict[str, str]:
    """Settings that begin so and are not among `SECURITY_NAMES`."""
    settings: dict[str, str] = {}
    for before in reversed(keys.prefixes):
        for written, value in keys.values.items():
            name = written.removeprefix(before)
            is_other = written.startswith(before + prefix) and name not in SECURITY_NAMES
            if is_other and value is not None:
                settings[name] = str(value)
    return settings
