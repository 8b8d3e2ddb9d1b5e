"""Settings that converters with a schema registry have in common, and the registry that they name.

`schema.registry.basic.auth.user.info` is the same as `basic.auth.user.info`, and so with each
setting of the client; where both are given, the one with the prefix wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Unsupported,
)
from barnabas.connect.config.validators import at_least
from barnabas.connect.config.values import Password
from barnabas.connect.converters.base import flag
from barnabas.schemas.data.errors import ConfigError
from barnabas.schemas.registry_access import (
    BASIC,
    BEARER,
    NAME_CHECK,
    PREFIX,
    open_registry,
)
from barnabas.schemas.registry_client import RegistryClient

_STRATEGY_PLACE: Final = "io.confluent.kafka.serializers.subject."


def _text(name: str, doc: str, default: str | None = None) -> Setting:
    return Setting(name, ConfigType.STRING, default=default, doc=doc)


def _secret(name: str, doc: str) -> Setting:
    return Setting(name, ConfigType.PASSWORD, default=None, doc=doc)


def _count(name: str, default: int, doc: str) -> Setting:
    return Setting(name, ConfigType.INT, default, Importance.LOW, doc, validator=at_least(0))


ACCESS_SETTINGS: Final = (
    Setting(
        "schema.registry.url",
        ConfigType.LIST,
        importance=Importance.HIGH,
        doc="The registry's URLs; the next is asked where one does not answer.",
    ),
    _text(BASIC, "Source of user and password: URL, USER_INFO or SASL_INHERIT.", "URL"),
    _secret("basic.auth.user.info", "user:password for USER_INFO."),
    _secret("schema.registry.basic.auth.user.info", "Older name of basic.auth.user.info."),
    _secret("sasl.jaas.config", "The login that SASL_INHERIT takes user and password of."),
    _text(BEARER, "Source of tokens: STATIC_TOKEN or OAUTHBEARER."),
    _secret("bearer.auth.token", "The token of STATIC_TOKEN."),
    _text("bearer.auth.issuer.endpoint.url", "Token endpoint of OAUTHBEARER."),
    _text("bearer.auth.client.id", "The client that asks for tokens."),
    _secret("bearer.auth.client.secret", "The client's secret."),
    _text("bearer.auth.scope", "The scope of the tokens."),
    Setting(
        "bearer.auth.cache.expiry.buffer.seconds",
        ConfigType.SHORT,
        300,
        Importance.LOW,
        "So long before its end a token is not used any more.",
        validator=at_least(0),
    ),
    _text("bearer.auth.logical.cluster", "The registry behind a proxy that is meant."),
    _text("bearer.auth.identity.pool.id", "The pool of identities that the token is of."),
    _count("max.retries", 3, "Maximum number of retries of a request."),
    _count("retries.wait.ms", 1000, "First pause between retries; it doubles each time."),
    _count("retries.max.wait.ms", 20_000, "The longest wait."),
    _text(f"{PREFIX}ssl.truststore.type", "JKS, PKCS12 or PEM.", "JKS"),
    _text(f"{PREFIX}ssl.truststore.location", "A file with the authorities to trust."),
    _secret(f"{PREFIX}ssl.truststore.password", "The file's password."),
    _secret(f"{PREFIX}ssl.truststore.certificates", "The authorities to trust, in PEM."),
    _text(f"{PREFIX}ssl.keystore.type", "JKS, PKCS12 or PEM.", "JKS"),
    _text(f"{PREFIX}ssl.keystore.location", "A file with the key and certificate to show."),
    _secret(f"{PREFIX}ssl.keystore.password", "The file's password."),
    _secret(f"{PREFIX}ssl.keystore.key", "The key to show, in PEM."),
    _secret(f"{PREFIX}ssl.keystore.certificate.chain", "The certificates to show, in PEM."),
    _secret(f"{PREFIX}ssl.key.password", "The password of the key."),
    _text(
        f"{PREFIX}{NAME_CHECK}",
        "Check of host names in certificates; empty or none disables it.",
        "https",
    ),
)


def _strategy(part: str) -> Setting:
    return Setting(
        f"{part}.subject.name.strategy",
        ConfigType.STRING,
        default=f"{_STRATEGY_PLACE}TopicNameStrategy",
        doc=f"Naming of {part} subjects: by topic, record, or both.",
    )


_ACCESS: Final = Definition(ACCESS_SETTINGS)
REGISTRY_SETTINGS: Final = (
    *ACCESS_SETTINGS,
    flag("auto.register.schemas", "Register new schemas.", default=True),
    flag("use.latest.version", "Write values with the subject's latest schema."),
    flag("normalize.schemas", "Have the registry compare schemas in their normal form."),
    flag(
        "ignore.default.for.nullables",
        "Keep nulls of fields that have a default.",
    ),
    Setting(
        "use.schema.id", ConfigType.INT, default=-1, doc="The schema that all are written with."
    ),
    _strategy("key"),
    _strategy("value"),
    Setting(
        "schemas.cache.config",
        ConfigType.INT,
        default=1000,
        importance=Importance.LOW,
        doc="Number of schemas in the cache.",
    ),
)


_IDS: Final = "io.confluent.kafka.serializers.schema.id."
UNSUPPORTED: Final = (
    *(
        Unsupported(name.replace(".", r"\."), ("", "false"))
        for name in (
            *("generalized.sum.type.support", "generate.struct.for.nulls", "int.for.enums"),
            *("preserve.additional.properties", "propagate.schema.tags", "schema.reflection"),
        )
    ),
    Unsupported(r"wrapper\.for\.raw\.primitives|optional\.for\.proto2", ("", "true")),
    Unsupported(r"rule\.(actions|executors).*", instead="rules of schemas are not applied"),
    Unsupported(
        r"use\.latest\.with\.metadata|use\.schema\.guid|proxy\.host|context\.name\.strategy"
    ),
    Unsupported(r"(key|value)\.schema\.id\.serializer", ("", f"{_IDS}PrefixSchemaIdSerializer")),
    Unsupported(
        r"(key|value)\.schema\.id\.deserializer",
        ("", f"{_IDS}PrefixSchemaIdDeserializer", f"{_IDS}DualSchemaIdDeserializer"),
    ),
)
"""Further settings of Confluent's converters, with the values that have no effect."""


def registry_of(settings: Mapping[str, Any], *, normalizes: bool) -> RegistryClient:
    """Return the registry that a converter's settings name. Raises ConfigError."""
    given = dict(settings)
    for name in _ACCESS.settings:
        if PREFIX + name in settings:
            given[name] = settings[PREFIX + name]
    if given.get(BASIC) and given.get(BEARER):
        raise ConfigError(f"Only one of '{BASIC}' and '{BEARER}' may be specified")
    values = {
        name: value.value if isinstance(value, Password) else value
        for name, value in _ACCESS.parse(given).items()
    }
    return open_registry(values, normalizes=normalizes)
