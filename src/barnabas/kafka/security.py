"""TLS and logins of clients: translates Java's or librdkafka's names for each kind of client.

Key and trust stores may be JKS, PKCS12 or PEM for every client. A trust store is read here, so that
other machines do not need the file. If the client reads a key store itself (PEM and PKCS12 for
librdkafka, all three for Java), it gets the path.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.errors import ConfigError
from barnabas.base.jaas import JaasError, jaas_options
from barnabas.base.scram import HASHES
from barnabas.base.tls.cipher_suites import TLS13_SUITES, openssl_suites
from barnabas.base.tls.contexts import (
    PropertyKeys,
    client_context,
    configured_key,
    load_key,
    trusted_pem,
)
from barnabas.base.tls.key_stores import (
    KeyPair,
    StoreKind,
    key_of_files,
    only_certificates,
    store_kind,
)
from barnabas.kafka.setting_names import (
    JAAS,
    JAVA_SECURITY,
    KEYSTORE,
    MECHANISMS,
    NAME_CHECK,
    OWN,
    PROTOCOLS,
    SECURITY_NAMES,
    SYSTEM_STORE,
    TRUSTED,
    SettingNames,
    is_false,
    is_true,
    other_settings,
)

if TYPE_CHECKING:
    from barnabas.kafka.wire import Access, BearerLogin

_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    **dict.fromkeys(HASHES, "org.apache.kafka.common.security.scram.ScramLoginModule"),
}


@dataclass(frozen=True, slots=True)
class Login:
    """A name and a password."""

    user: str
    password: str = field(repr=False)
    is_token: bool = False
    """True if they are the id and the HMAC of a delegation token (KIP-48)."""


class Security:
    """The TLS and login of a client, from settings with Java's names or librdkafka's."""

    def __init__(self, names: SettingNames) -> None:
        """Raises ConfigError for an unknown protocol."""
        self._names = names
        self.protocol = (self._text("security.protocol") or "PLAINTEXT").upper()
        if self.protocol not in PROTOCOLS:
            raise self._error(
                "security.protocol", f"{self.protocol} is none of {', '.join(PROTOCOLS)}"
            )
        self.has_tls = self.protocol.endswith("SSL")
        self.mechanism: str | None = None
        if self.protocol.startswith("SASL"):
            given = self._text("sasl.mechanism") or self._text("sasl.mechanisms")
            self.mechanism = (given or "GSSAPI").upper()

    def reads(self, name: str) -> bool:
        """Return whether a setting says something for this protocol."""
        if name.startswith("sasl."):
            return name in SECURITY_NAMES and self.mechanism is not None
        return name in SECURITY_NAMES and (self.has_tls or not name.startswith("ssl."))

    def login(self) -> Login | None:
        """Name and password; None where no login is asked for.

        Raises ConfigError for a mechanism that has none, and where one is missing.
        """
        if self.mechanism is None:
            return None
        if self.mechanism not in MECHANISMS:
            raise self._error(
                "sasl.mechanism",
                f"{self.mechanism} is not supported; set one of {', '.join(MECHANISMS)}",
            )
        login = self.found_login()
        given = {"username": login.user, "password": login.password}
        missing = [name for name, value in given.items() if not value]
        if missing:
            raise self._error(
                JAAS,
                f"has no {' and no '.join(missing)}; it is written "
                '<module> required username="…" password="…";',
            )
        return login

    def found_login(self) -> Login:
        """Name and password as far as they are set. Raises ConfigError."""
        try:
            options = jaas_options(self._text(JAAS))
        except JaasError as error:
            raise self._error(JAAS, str(error)) from None
        return Login(
            options.get("username") or self._text("sasl.username"),
            options.get("password") or self._text("sasl.password"),
            options.get("tokenauth", "").lower() == "true",
        )

    @property
    def checks_names(self) -> bool:
        """True if the name in a broker's certificate must be the broker's. Raises ConfigError."""
        algorithm = self._names.find(NAME_CHECK)
        if algorithm is None or algorithm.lower() == "https":
            return True
        if algorithm.lower() not in ("", "none"):
            raise self._error(NAME_CHECK, f"{algorithm} is not https, or none")
        return False

    @property
    def checks_certificate(self) -> bool:
        """True if a broker's certificate must be trusted. Raises ConfigError."""
        name = "enable.ssl.certificate.verification"
        text = self._text(name) or "true"
        if not is_true(text) and not is_false(text):
            raise self._error(name, f"{text} is not true or false")
        return is_true(text)

    def librdkafka(self) -> dict[str, str]:
        """For confluent-kafka's clients. Raises ConfigError.

        Other mechanisms than PLAIN and SCRAM have their settings passed on.
        """
        if self.protocol == "PLAINTEXT":
            return {}
        settings = {"security.protocol": self.protocol}
        if self.mechanism is not None:
            settings |= self._others("sasl.")
            settings["sasl.mechanism"] = self.mechanism
            login = self.login() if self.mechanism in MECHANISMS else self.found_login()
            if login is not None and login.user:
                settings |= {"sasl.username": login.user, "sasl.password": login.password}
        if not self.has_tls:
            return settings
        settings |= self._others("ssl.") | self._own_names((*TRUSTED, *OWN, "ssl.key.password"))
        suites = settings.pop("ssl.cipher.suites", "")
        if known := openssl_suites(suites):
            settings["ssl.cipher.suites"] = known
        elif not TLS13_SUITES.issuperset(name.strip() for name in suites.split(",") if name):
            raise self._error("ssl.cipher.suites", f"OpenSSL has none of {suites}")
        if self._names.find(NAME_CHECK) is not None:
            settings[NAME_CHECK] = "https" if self.checks_names else "none"
        if not any(name in settings for name in TRUSTED):
            trusted = self._trusted()
            if trusted is not None:
                settings["ssl.ca.pem"] = trusted
        if not any(name in settings for name in OWN):
            settings |= self._librdkafka_key()
        return settings

    def _librdkafka_key(self) -> dict[str, str]:
        location = self._text(KEYSTORE)
        kind = self._kind(location) if location else None
        if kind is StoreKind.PEM:
            return {"ssl.certificate.location": location, "ssl.key.location": location}
        if kind is StoreKind.PKCS12:
            return {KEYSTORE: location} | self._own_names(("ssl.keystore.password",))
        own = self._own_key()
        if own is None:
            return {}
        private, certificates = own.parts()
        return {"ssl.key.pem": private, "ssl.certificate.pem": certificates}

    def java(self) -> dict[str, str]:
        """For Kafka's Java clients, as Spark has them. Raises ConfigError.

        A key store must be at the same place on every machine of Spark's.
        """
        if self.protocol == "PLAINTEXT":
            return {}
        settings = {"security.protocol": self.protocol}
        if self.mechanism is not None:
            settings |= self._others("sasl.", is_java=True) | self._own_names((JAAS,))
            settings["sasl.mechanism"] = self.mechanism
            if self.mechanism in MECHANISMS:
                login = self.login()
                assert login is not None
                settings.setdefault(JAAS, _jaas_line(self.mechanism, login))
        if not self.has_tls:
            return settings
        settings |= self._others("ssl.", is_java=True)
        algorithm = self._names.find(NAME_CHECK)
        if algorithm is not None:
            settings[NAME_CHECK] = algorithm if self.checks_names else ""
        trusted = self._authorities()
        if trusted is not None:
            settings["ssl.truststore.type"] = StoreKind.PEM.value
            # Java takes nothing between and around certificates.
            settings["ssl.truststore.certificates"] = only_certificates("", trusted).strip()
        return settings | self._java_key()

    def _java_key(self) -> dict[str, str]:
        location = self._text(KEYSTORE)
        passwords = self._own_names(("ssl.keystore.password", "ssl.key.password"))
        if location:
            return {KEYSTORE: location, "ssl.keystore.type": self._kind(location)} | passwords
        own = self._own_key()
        if own is None:
            return {}
        private, certificates = own.parts()
        settings = {
            "ssl.keystore.type": StoreKind.PEM.value,
            "ssl.keystore.key": private,
            "ssl.keystore.certificate.chain": certificates,
        }
        return settings | ({"ssl.key.password": own.password} if own.password else {})

    def aiokafka(self) -> dict[str, Any]:
        """Keyword arguments of aiokafka's clients. Raises ConfigError."""
        options: dict[str, Any] = {"security_protocol": self.protocol}
        if self.has_tls:
            options["ssl_context"] = self.tls()
        login = self.login()
        if login is not None:
            options |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": login.user,
                "sasl_plain_password": login.password,
            }
        return options

    def access(
        self, bootstrap_servers: str, timeout_s: float = 10.0, bearer: BearerLogin | None = None
    ) -> Access:
        """For connections of our own; `bearer` is the login by OAUTHBEARER. Raises ConfigError."""
        from barnabas.kafka.wire import Access

        login = (None if bearer is not None else self.login()) or Login("", "")
        plain = Access(
            bootstrap_servers,
            mechanism=self.mechanism,
            user=login.user,
            password=login.password,
            is_token=login.is_token,
            bearer=bearer,
            timeout_seconds=timeout_s,
        )
        if not self.has_tls:
            return plain
        own = self._own_key()
        path = self._authorities_path()
        return replace(
            plain,
            has_tls=True,
            ca_path=path,
            ca_pem=None if path else self._trusted(),
            own=own,
            checks_host=self.checks_names,
            checks_certificate=self.checks_certificate,
        )

    def tls(self) -> ssl.SSLContext:
        """For connections that Python makes. Raises ConfigError."""
        path = self._authorities_path()
        trusted = None if path else self._trusted()
        own = self._own_key()
        try:
            context = client_context(
                trusted,
                authorities_path=path,
                checks_names=self.checks_names,
                checks_certificate=self.checks_certificate,
            )
        except (OSError, ValueError) as error:
            name = "ssl.ca.location" if path else "ssl.truststore.location"
            what = path or "the certificates"
            raise self._error(name, f"{what} cannot be used: {_why(error)}") from error
        if own is not None:
            load_key(context, own, self._names.key(self._key_name()))
        return context

    def _authorities_path(self) -> str | None:
        """The file or directory of librdkafka's setting."""
        path = self._text("ssl.ca.location")
        return None if path in ("", SYSTEM_STORE) else path

    def _authorities(self) -> str | None:
        """The authorities to trust, in PEM, under either kind of names."""
        path = self._authorities_path()
        if path is None:
            return self._trusted()
        try:
            with open(path, encoding="latin-1") as file:
                return file.read()
        except OSError as error:
            raise self._error("ssl.ca.location", f"cannot be read: {error}") from error

    def _trusted(self) -> str | None:
        inline = self._text("ssl.ca.pem")
        if inline:
            return inline
        try:
            return trusted_pem(_Texts(self._names))
        except ConfigError as error:
            raise self._error(error.key, error.message) from error

    def _own_key(self) -> KeyPair | None:
        """The key to show, under either kind of names. Raises ConfigError."""
        password = self._text("ssl.key.password")
        certificate, key = (self._text(f"ssl.{name}.location") for name in ("certificate", "key"))
        if certificate:
            try:
                return key_of_files(certificate, key or None, password)
            except OSError as error:
                raise self._error("ssl.certificate.location", f"cannot be read: {error}") from error
        inline = self._text("ssl.key.pem"), self._text("ssl.certificate.pem")
        if any(inline):
            return KeyPair("\n".join(inline), password)
        try:
            return configured_key(_Texts(self._names))
        except ConfigError as error:
            raise self._error(error.key, error.message) from error

    def _key_name(self) -> str:
        """The setting that names the key to show."""
        names = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.key", KEYSTORE)
        return next((name for name in names if self._text(name)), KEYSTORE)

    def _kind(self, location: str) -> StoreKind:
        try:
            return store_kind(location)
        except OSError as error:
            raise self._error(KEYSTORE, f"cannot be read: {error}") from error

    def _others(self, prefix: str, *, is_java: bool = False) -> dict[str, str]:
        if not isinstance(self._names, PropertyKeys):
            return {}
        settings = other_settings(self._names, prefix)
        if is_java:
            return settings
        return {name: value for name, value in settings.items() if name not in JAVA_SECURITY}

    def _own_names(self, names: tuple[str, ...]) -> dict[str, str]:
        return {name: text for name in names if (text := self._text(name))}

    def _text(self, name: str) -> str:
        return _text(self._names, name)

    def _error(self, name: str, message: str) -> ConfigError:
        return ConfigError(self._names.key(name), message)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Settings by the names that the key store reader uses."""

    names: SettingNames

    def get_str(self, name: str) -> str:
        return _text(self.names, name)


def _text(names: SettingNames, name: str) -> str:
    return names.find(name) or ""


def _jaas_line(mechanism: str, login: Login) -> str:
    line = (
        f'{_LOGIN_MODULES[mechanism]} required username="{_quoted(login.user)}" '
        f'password="{_quoted(login.password)}"'
    )
    return line + (' tokenauth="true";' if login.is_token else ";")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(reason).replace("_", " ").lower()
