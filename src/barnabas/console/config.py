"""The console's settings: a properties file, with flags on top; and the proxies that they trust.

bootstrap.servers            the brokers
client.…                     what a Kafka client takes, as client.security.protocol
listeners                    http:// or https:// addresses; https needs ssl.keystore.location
schema.registry.url          the registry; its login and TLS are set as Confluent's clients do
connect.url                  Kafka Connect workers, of one group or of several; also
                             connect.basic.auth.user.info, connect.ssl.…
sql.url                      a ksqlDB server, as Barnabas' SQL server is one; also sql.basic.auth.…
console.users.file           a password file; without one nobody logs in
console.roles.NAME.rights    view, read, unmasked, produce, edit, admin
console.roles.NAME.topics    patterns such as orders-*; all by default; also .groups, .subjects,
                             .connectors, .queries
console.read.only            true: nothing can be changed
console.masked.fields        fields of keys, values and headers that need the right `unmasked`
console.audit.file           where the audit log is written
console.trusted.proxies      addresses of proxies whose x-forwarded-… headers are believed
console.session.minutes      how long a login lasts; 480 by default
console.oidc.…               a login by an identity provider: see `oidc/settings.py`

A proxy adds the address that it was asked from to the end of `x-forwarded-for`, and puts the scheme
into `x-forwarded-proto`. Anybody can send both headers, so they count only if they come from an
address of `console.trusted.proxies`.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from barnabas.base.addresses import is_loopback
from barnabas.base.errors import ConfigError
from barnabas.base.tls.contexts import PropertyKeys, configured_client
from barnabas.console.access import ROLE_PREFIX, Role, roles_of
from barnabas.console.oidc.settings import ISSUER, OidcSettings, oidc_settings
from barnabas.console.oidc.settings import PREFIX as OIDC_PREFIX
from barnabas.kafka.settings import check_servers
from barnabas.schemas.data.errors import ConfigError as SchemaConfigError
from barnabas.schemas.registry_access import RegistryAccess, access_of, is_access_setting
from barnabas.web.listening import ListenAddress

if TYPE_CHECKING:
    from starlette.requests import Request

BOOTSTRAP: Final = "bootstrap.servers"
LISTENERS: Final = "listeners"
REGISTRY: Final = "schema.registry.url"
CONNECT: Final = "connect"
SQL: Final = "sql"
BESIDE: Final = (CONNECT, SQL)
"""Services with an address, a login and TLS of their own: `NAME.url` and so on."""
USERS_FILE: Final = "console.users.file"
READ_ONLY: Final = "console.read.only"
MASKED: Final = "console.masked.fields"
PROXIES: Final = "console.trusted.proxies"
AUDIT_FILE: Final = "console.audit.file"
SESSION_MINUTES: Final = "console.session.minutes"
DEFAULT_LISTENERS: Final = "http://127.0.0.1:8090"
_OWN: Final = frozenset(
    {
        *(BOOTSTRAP, LISTENERS, REGISTRY, USERS_FILE, READ_ONLY, MASKED),
        *(AUDIT_FILE, SESSION_MINUTES, PROXIES),
        *(f"{name}.{key}" for name in BESIDE for key in ("url", "basic.auth.user.info")),
    }
)
_CLIENT_PREFIX: Final = "client."
_PREFIXES: Final = (
    _CLIENT_PREFIX,
    ROLE_PREFIX,
    OIDC_PREFIX,
    "ssl.",
    *(f"{name}.ssl." for name in BESIDE),
)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class ConsoleConfig:
    """Checked settings. Raises ConfigError."""

    values: Mapping[str, str] = field(repr=False)
    clients: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further settings of Kafka clients, as those of a --command-config."""
    bootstrap_servers: str = field(init=False)
    listeners: tuple[ListenAddress, ...] = field(init=False)
    roles: Mapping[str, Role] = field(init=False)
    is_read_only: bool = field(init=False)
    """True if nothing can be changed."""
    proxies: Proxies = field(init=False)
    """The proxies that are believed."""
    oidc: OidcSettings | None = field(init=False)
    """The login by an identity provider; None without one."""

    def __post_init__(self) -> None:
        values = self.values
        for key in values:
            if key not in _OWN and not key.startswith(_PREFIXES) and not is_access_setting(key):
                raise ConfigError(key, "is not a setting of the console")
        servers = str(values.get(BOOTSTRAP) or self.clients.get(BOOTSTRAP) or "")
        if not servers:
            raise ConfigError(BOOTSTRAP, "must be set")
        check_servers(servers)
        listeners = tuple(
            _listener(part.strip())
            for part in str(values.get(LISTENERS) or DEFAULT_LISTENERS).split(",")
        )
        object.__setattr__(self, "bootstrap_servers", servers)
        object.__setattr__(self, "listeners", listeners)
        object.__setattr__(self, "roles", roles_of(values))
        object.__setattr__(self, "proxies", proxies_of(str(values.get(PROXIES) or "")))
        object.__setattr__(self, "is_read_only", _is_true(values, READ_ONLY))
        for key in (REGISTRY, *(f"{name}.url" for name in BESIDE)):
            for url in self.urls(key):
                if not _is_web(url):
                    text = f"{_shown(url)!r} is not an http:// or https:// address"
                    raise ConfigError(key, text)
        oidc = oidc_settings(values, self.roles.keys(), is_on_loopback=self.is_on_loopback)
        object.__setattr__(self, "oidc", oidc)
        if not self.users_file and oidc is None and not self.is_on_loopback:
            raise ConfigError(
                LISTENERS,
                f"an address that others reach needs a login: set {USERS_FILE} or {ISSUER}",
            )
        if self.session_s <= 0:
            raise ConfigError(SESSION_MINUTES, "must be positive")

    @property
    def is_on_loopback(self) -> bool:
        """True if only this machine reaches the console."""
        return all(is_loopback(listener.host) for listener in self.listeners)

    @property
    def has_tls(self) -> bool:
        """True if a listener speaks https."""
        return any(listener.is_tls for listener in self.listeners)

    def urls(self, key: str) -> tuple[str, ...]:
        """The addresses that a setting has, with commas between; empty without one."""
        text = str(self.values.get(key) or "")
        return tuple(part.strip() for part in text.split(",") if part.strip())

    def registry(self) -> RegistryAccess | None:
        """How the registry is reached; None without one. Raises ConfigError."""
        if not self.urls(REGISTRY):
            return None
        try:
            return replace(access_of(self.values), urls=self.urls(REGISTRY))
        except SchemaConfigError as error:
            raise ConfigError("schema.registry", str(error)) from error

    def user_info(self, name: str) -> str | None:
        """`name:password` for one of BESIDE."""
        return self.values.get(f"{name}.basic.auth.user.info") or None

    def tls(self, name: str) -> ssl.SSLContext | None:
        """TLS for one of BESIDE; None is Python's own. Raises ConfigError."""
        if not any(key.startswith(f"{name}.ssl.") for key in self.values):
            return None
        return configured_client(PropertyKeys(self.values, (f"{name}.",)))

    @property
    def client(self) -> dict[str, str]:
        """The settings of Kafka clients."""
        own = {
            key.removeprefix(_CLIENT_PREFIX): value
            for key, value in self.values.items()
            if key.startswith(_CLIENT_PREFIX)
        }
        return {key: value for key, value in {**self.clients, **own}.items() if key != BOOTSTRAP}

    @property
    def users_file(self) -> str:
        """The password file; empty if nobody logs in."""
        return str(self.values.get(USERS_FILE) or "")

    @property
    def masked_fields(self) -> tuple[str, ...]:
        """Names or paths of fields."""
        text = str(self.values.get(MASKED) or "")
        return tuple(part.strip() for part in text.split(",") if part.strip())

    @property
    def audit_file(self) -> str | None:
        """The path of the audit log; None without one."""
        return str(self.values.get(AUDIT_FILE) or "") or None

    @property
    def session_s(self) -> float:
        """The time that a login lasts."""
        text = str(self.values.get(SESSION_MINUTES) or "480")
        try:
            return float(text) * 60
        except ValueError:
            raise ConfigError(SESSION_MINUTES, f"{text} is not a number") from None

    # What `configured_server` reads of the listeners' TLS.

    def get_str(self, name: str) -> str:
        return str(self.values.get(name) or "")

    def get_bool(self, name: str) -> bool:
        return self.get_str(name).lower() == "true"


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an address of IPv6 that is none
        return False


def _shown(url: str) -> str:
    """A URL without its login."""
    scheme, colon, rest = url.rpartition("://")
    return scheme + colon + rest.rpartition("@")[2]


def _is_true(values: Mapping[str, str], key: str) -> bool:
    text = str(values.get(key) or "false").lower()
    if text not in ("true", "false"):
        raise ConfigError(key, f"{text} is not true or false")
    return text == "true"


def _listener(text: str) -> ListenAddress:
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None:
        raise ConfigError(LISTENERS, f"{text!r} is not http://HOST:PORT or https://HOST:PORT")
    return ListenAddress(parts.hostname, port, parts.scheme == "https")


@dataclass(frozen=True, slots=True)
class Proxies:
    """The networks of trusted proxies."""

    networks: Sequence[Network] = ()

    def address(self, request: Request) -> str:
        """Where a request comes from: the last address that is not a trusted proxy's."""
        address = request.client.host if request.client is not None else ""
        told = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        for one in reversed([text.strip() for text in told if text.strip()]):
            if not self._trusts(address) or _parsed(one) is None:
                break
            address = one
        return address

    def is_secure(self, request: Request) -> bool:
        """Return True if the browser uses https, to the console or to a trusted proxy."""
        if request.url.scheme == "https":
            return True
        if not self._trusts(request.client.host if request.client is not None else ""):
            return False
        schemes = ",".join(request.headers.getlist("x-forwarded-proto")).split(",")
        return schemes[-1].strip().lower() == "https"

    def _trusts(self, address: str) -> bool:
        found = _parsed(address)
        return found is not None and any(found in network for network in self.networks)


def proxies_of(text: str) -> Proxies:
    """The value of the setting: addresses and networks, with commas between. Raises ConfigError."""
    networks: list[Network] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        try:
            networks.append(ipaddress.ip_network(part))
        except ValueError:
            message = f"{part!r} is not an address or a network such as 10.0.0.0/8"
            raise ConfigError(PROXIES, message) from None
    return Proxies(tuple(networks))


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found if mapped is None else mapped
