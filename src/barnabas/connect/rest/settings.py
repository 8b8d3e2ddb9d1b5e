"""The worker's settings of its REST interface, and TLS: of the interface, and for other workers.

`listeners` (this machine alone, `http://127.0.0.1:8083`, unless it says otherwise: Kafka's default
is every address), `admin.listeners`, `rest.advertised.*`, `response.http.headers.config`,
`rest.extension.classes`. `listeners.https.ssl.*` and `admin.listeners.https.ssl.*` hold, if there
is any of them, instead of `ssl.*`. Source: RestServerConfig and
org.apache.kafka.connect.runtime.rest.util.SSLUtils (Kafka 4.3).
"""

from __future__ import annotations

import csv
import email.utils
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas.base.errors import ConfigError as BaseConfigError
from barnabas.base.jaas import JaasError, jaas_options, jaas_sections
from barnabas.base.tls.contexts import (
    CLIENT_AUTH,
    PropertyKeys,
    choose_suites,
    choose_versions,
    https_client,
    https_listener,
)
from barnabas.connect.config.values import invalid, with_prefix
from barnabas.schemas.data.errors import ConfigError
from barnabas.web.listening import ListenAddress
from barnabas.web.passwords import Passwords
from barnabas.web.protection import words

LISTENERS: Final = "listeners"
ADMIN_LISTENERS: Final = "admin.listeners"
DEFAULT_LISTENERS: Final = "http://127.0.0.1:8083"
EXTENSIONS: Final = "rest.extension.classes"
BASIC_AUTH: Final = (
    "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
)
LOGIN_FILE: Final = "java.security.auth.login.config"
"""The JAAS file, as our own setting; else the same in KAFKA_OPTS, as Kafka's scripts take it."""
_SECTION: Final = "KafkaConnect"
_LISTENER: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_PORT_MAX: Final = 65535
_EVERYWHERE: Final = ("0.0.0.0", "::")
_ACTIONS: Final = ("set", "add", "setDate", "addDate")
REGULAR: Final = "listeners.https."
ADMIN: Final = "admin.listeners.https."
_CLIENT_AUTH: Final = "ssl.client.auth"


def listeners(settings: Mapping[str, str]) -> list[ListenAddress]:
    """Return where the REST interface listens. Raises ConfigError."""
    texts = words(settings.get(LISTENERS, DEFAULT_LISTENERS))
    if not texts:
        raise ConfigError(
            "Invalid value for listeners, at least one URL is expected, ex: "
            "http://localhost:8080,https://localhost:8443."
        )
    return [_listener(text) for text in texts]


def admin_listeners(settings: Mapping[str, str]) -> list[ListenAddress] | None:
    """Return where loggers are served: None with all else, an empty list nowhere."""
    if ADMIN_LISTENERS not in settings:
        return None
    return [_listener(text) for text in words(settings[ADMIN_LISTENERS])]


def _listener(text: str) -> ListenAddress:
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ConfigError("Listener doesn't have the right format (protocol://hostname:port).")
    protocol, host, port = match[1].lower(), match[2], int(match[3])
    if protocol not in ("http", "https"):
        raise ConfigError('Listener protocol must be either "http" or "https".')
    if not 0 <= port <= _PORT_MAX:
        raise invalid(LISTENERS, text, f"{port} is not a port")
    # Without a name Kafka listens on every address, and so does this.
    return ListenAddress(host or "0.0.0.0", port, protocol == "https")


def advertised_url(settings: Mapping[str, str], bound: Sequence[ListenAddress]) -> str:
    """Return what other workers know this one by. Raises ConfigError."""
    wanted = settings.get("rest.advertised.listener", "").strip().lower()
    if wanted not in ("", "http", "https"):
        raise ConfigError('Listener protocol must be either "http" or "https".')
    is_tls = wanted == "https" or (not wanted and all(listener.is_tls for listener in bound))
    own = next((listener for listener in bound if listener.is_tls == is_tls), bound[0])
    host = settings.get("rest.advertised.host.name") or own.host
    if host in _EVERYWHERE:
        host = socket.gethostname()
    port = settings.get("rest.advertised.port") or own.port
    try:
        return str(ListenAddress(host, int(port), is_tls))
    except ValueError:
        raise invalid("rest.advertised.port", port, "Not a number of type INT") from None


def response_headers(settings: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers for each answer, by `response.http.headers.config`. Raises ConfigError."""
    text = settings.get("response.http.headers.config", "").strip()
    if not text:
        return []
    return [_header(rule) for rule in next(csv.reader([text], skipinitialspace=True))]


def _header(rule: str) -> tuple[bytes, bytes]:
    parts = rule.strip().split(None, 1)
    if len(parts) != 2:
        raise ConfigError(
            f"Invalid format of header config '{rule}'. Expected: '[action] [header name]:[header "
            "value]'"
        )
    action, header = parts
    if action.lower() not in map(str.lower, _ACTIONS):
        raise ConfigError(
            f"Invalid header config action: '{action}'. Expected one of [{', '.join(_ACTIONS)}]"
        )
    fields = header.split(":")
    if len(fields) != 2:
        raise ConfigError(
            f"Invalid format of header name and header value pair '{header}'. Expected: '[header "
            "name]:[header value]'"
        )
    name, value = fields[0].strip(), fields[1].strip()
    if not name or re.search(r"\s", name):
        raise ConfigError(
            f"Invalid header name '{name}'. The '[header name]' cannot contain whitespace"
        )
    if action.lower().endswith("date"):
        value = email.utils.formatdate(time.time() + int(value) / 1000, usegmt=True)
    return name.encode(), value.encode()


def passwords(settings: Mapping[str, str]) -> Passwords | None:
    """Return who may log in, where the basic authentication extension is named.

    Raises ConfigError, also for extensions that are not known here.
    """
    names = words(settings.get(EXTENSIONS))
    for name in names:
        if name != BASIC_AUTH:
            text = f"of Java's extensions only {BASIC_AUTH} is supported"
            raise invalid(EXTENSIONS, name, text)
    if not names:
        return None
    path = settings.get(LOGIN_FILE) or _of_java_options()
    if not path:
        raise ConfigError(
            f"{EXTENSIONS} needs {LOGIN_FILE}, the JAAS file, as a setting or in KAFKA_OPTS"
        )
    try:
        with open(path, encoding="utf-8") as file:
            section = jaas_sections(file.read()).get(_SECTION)
        if section is None:
            raise ConfigError(f"{path} has no section {_SECTION}")
        password_file = jaas_options(section).get("file")
        if not password_file:
            raise ConfigError(f"section {_SECTION} of {path} names no file")
        return Passwords(password_file, LOGIN_FILE)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{LOGIN_FILE}: {path} cannot be read: {error}") from error
    except JaasError as error:
        raise ConfigError(f"section {_SECTION} of {path}: {error}") from None
    except BaseConfigError as error:
        raise ConfigError(str(error)) from error


def _of_java_options() -> str:
    match = re.search(rf"-D{re.escape(LOGIN_FILE)}=(\S+)", os.environ.get("KAFKA_OPTS", ""))
    return match[1] if match else ""


def listener_tls(settings: Mapping[str, str], prefix: str) -> ssl.SSLContext:
    """Return TLS of https listeners. Raises ConfigError."""
    values = _values(settings, prefix)
    context = _made(https_listener, values)
    wanted = values.get(_CLIENT_AUTH, "none").strip()
    if wanted not in CLIENT_AUTH:
        text = f"String must be one of: {', '.join(CLIENT_AUTH)}"
        raise invalid(_CLIENT_AUTH, wanted, text)
    context.verify_mode = CLIENT_AUTH[wanted]
    return context


def client_tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Return TLS for requests to other workers. Raises ConfigError."""
    return _made(https_client, _values(settings, REGULAR))


def _values(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    own = with_prefix(settings, prefix)
    return own or {name: value for name, value in settings.items() if name.startswith("ssl.")}


def _made(
    make: Callable[[Mapping[str, str]], ssl.SSLContext], values: Mapping[str, str]
) -> ssl.SSLContext:
    try:
        context = make(values)
        keys = PropertyKeys(values)
        choose_versions(context, keys)
        choose_suites(context, keys)
    except BaseConfigError as error:
        raise ConfigError(str(error)) from error
    return context
