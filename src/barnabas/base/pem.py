"""TLS from PEM files, as Kafka's keys name them: `<prefix>ssl.keystore.location` and so on."""

import ssl
from typing import Protocol

from barnabas.base.config.errors import ConfigError

_BEGIN = "-----BEGIN "


class StringKeys(Protocol):
    """A configuration, as far as it is asked here."""

    def get_str(self, name: str) -> str:
        """The value of a key, empty where it is not set."""


class ListenerKeys(StringKeys, Protocol):
    """A configuration of listeners."""

    def get_bool(self, name: str) -> bool:
        """The value of a BOOLEAN key."""


def pem_file(config: StringKeys, prefix: str, store: str) -> str | None:
    """The PEM file of `store` (keystore, truststore), None where none is set.

    Raises ConfigError where it is another kind of store, or cannot be read.
    """
    location_key = f"{prefix}ssl.{store}.location"
    location = config.get_str(location_key)
    kind = config.get_str(f"{prefix}ssl.{store}.type").upper()
    if kind not in ("", "PEM") and location:
        raise ConfigError(
            f"{prefix}ssl.{store}.type",
            f"{kind} is not served: turn the {store} into a PEM file (`openssl pkcs12`, "
            "`keytool -exportcert -rfc`) and set PEM",
        )
    if not location:
        return None
    try:
        with open(location, encoding="latin-1") as file:
            text = file.read()
    except OSError as error:
        raise ConfigError(location_key, f"cannot be read: {error}") from error
    if _BEGIN not in text:
        raise ConfigError(
            location_key,
            f"{location} is not a PEM file; stores of Java (JKS, PKCS12) are not served: turn it "
            "into PEM (`openssl pkcs12`, `keytool -exportcert -rfc`)",
        )
    return location


def client_context(config: StringKeys, prefix: str) -> ssl.SSLContext:
    """TLS as a client. Raises ConfigError."""
    trusted = pem_file(config, prefix, "truststore")
    inline = config.get_str(f"{prefix}ssl.truststore.certificates") if prefix else ""
    where = f"{prefix}ssl.truststore.location"
    try:
        context = ssl.create_default_context(cafile=trusted, cadata=inline or None)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(where, f"the certificates cannot be used: {error}") from error
    if prefix and config.get_str(f"{prefix}ssl.endpoint.identification.algorithm") == "":
        context.check_hostname = False
    load_own(context, config, prefix)
    return context


def server_context(config: ListenerKeys) -> ssl.SSLContext:
    """TLS of https listeners: `ssl.client.authentication` says what clients show.

    Raises ConfigError.
    """
    if pem_file(config, "", "keystore") is None:
        raise ConfigError("ssl.keystore.location", "must be set for a listener that speaks https")
    trusted = pem_file(config, "", "truststore")
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            "ssl.truststore.location", f"the certificates cannot be used: {error}"
        ) from error
    load_own(context, config, "")
    wanted = config.get_str("ssl.client.authentication")
    if wanted == "REQUIRED" or config.get_bool("ssl.client.auth"):
        context.verify_mode = ssl.CERT_REQUIRED
    elif wanted == "REQUESTED":
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def load_own(context: ssl.SSLContext, config: StringKeys, prefix: str) -> None:
    """Give a context the private key and certificates of the keystore, if one is set."""
    own = pem_file(config, prefix, "keystore")
    if own is None:
        return
    password = config.get_str(f"{prefix}ssl.key.password")
    try:
        context.load_cert_chain(own, password=lambda: password)
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            f"{prefix}ssl.keystore.location", f"the key or certificate cannot be used: {error}"
        ) from error
