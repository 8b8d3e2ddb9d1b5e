"""How commands connect with our own protocol client: TLS and SASL from a client's configuration.

And what went wrong there, in one line that says what to do about it.
"""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Final

from barnabas.base.errors import ConfigError
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.cli.client_config import TOKEN_KEY
from barnabas.cli.errors import CliError, ExitCode
from barnabas.kafka.security import Security
from barnabas.kafka.setting_names import MECHANISMS
from barnabas.kafka.wire import (
    OAUTHBEARER,
    Access,
    AccessError,
    BrokenOffError,
    Connection,
    LoginError,
    NoTlsError,
    NoTokenError,
    TokenError,
    UntrustedError,
    WireError,
)
from barnabas.protocol.apis import METADATA
from barnabas.protocol.messages.metadata import MetadataRequest

CLIENT_ID: Final = "barnabas-cli"
OPENING_MAX_S: Final = 5.0
_TOKENS: Final = "sasl.oauthbearer."
CONFIG_HINT: Final = "in the file of --command-config, or with -X"


def access_for(
    bootstrap_servers: str,
    config: Mapping[str, str],
    timeout_s: float,
    opening_max_s: float = OPENING_MAX_S,
) -> Access:
    """Return how to open connections.

    Raises ConfigError for settings that are incomplete or that the CLI does not support.
    """
    security = Security(PropertyKeys(config))
    bearer = None
    if security.mechanism == OAUTHBEARER:
        from barnabas.kafka.bearer_login import bearer_login

        bearer = bearer_login(config)
    access = security.access(bootstrap_servers, timeout_s, bearer)
    if security.has_tls:
        security.tls()  # which names the setting that is wrong
    return replace(
        access,
        client_id=CLIENT_ID,
        is_token=TOKEN_KEY in config,
        opening_seconds_max=opening_max_s,
    )


def check(host: str, port: int, config: Mapping[str, str], timeout_s: float) -> None:
    """Connect and log in once. Raises CliError where that is refused; other failures are others'.

    Checks nothing if it cannot log in as the configuration says. Raises ConfigError.
    """
    if Security(PropertyKeys(config)).mechanism not in (None, OAUTHBEARER, *MECHANISMS):
        return
    if "ssl.keystore.location" in config and find_spec("cryptography") is None:
        return  # librdkafka reads PKCS 12 by itself
    try:
        access = access_for("", config, timeout_s, timeout_s)
    except ConfigError as error:
        if error.key.startswith(_TOKENS):
            return  # librdkafka has more ways to get a token
        raise
    try:
        with contextlib.closing(Connection(access, host, port)) as connection:
            # The first request that is not answered before a login.
            connection.call(METADATA, MetadataRequest(topics=[]))
    except (WireError, AccessError) as error:
        known = refusal(error, f"{host}:{port}", config)
        if known is not None:
            raise known from error


def refusal(
    error: WireError | AccessError, where: str, config: Mapping[str, str]
) -> CliError | None:
    """Return what a failed connection means, and what to do; None where it is only unreachable."""
    if isinstance(error, TokenError | NoTokenError):
        hint = f"check sasl.oauthbearer.* {CONFIG_HINT}"
        code = ExitCode.REFUSED if isinstance(error, TokenError) else ExitCode.UNREACHABLE
        return CliError(f"no token: {error}", code, hint)
    if isinstance(error, LoginError):
        what = "name, password"
        if Security(PropertyKeys(config)).mechanism == OAUTHBEARER:
            what = "token"
        hint = f"check the {what} and sasl.mechanism {CONFIG_HINT}"
        return CliError(str(error), ExitCode.REFUSED, hint)
    if isinstance(error, NoTlsError | UntrustedError):
        hint = _tls_hint(error.reason, where)
        return CliError(f"{where}: {error.reason}", ExitCode.REFUSED, hint)
    if isinstance(error, BrokenOffError):
        if Security(PropertyKeys(config)).protocol == "PLAINTEXT":
            hint = f"if it wants TLS or a login, set security.protocol {CONFIG_HINT}"
        else:
            hint = f"its port may want another: check security.protocol {CONFIG_HINT}"
        return CliError(f"{where}: it closed the connection", ExitCode.UNREACHABLE, hint)
    return None


def _tls_hint(text: str, where: str) -> str:
    if "hostname" in text.lower() or "ip address" in text.lower():
        return f"use a name that the certificate has: barnabas cert show {where} lists them"
    if "issuer" in text or "self" in text or "signed" in text:
        return f"name the authority's PEM file as ssl.truststore.location {CONFIG_HINT}"
    if "expired" in text:
        return f"renew it: barnabas cert show {where} tells more"
    if re.search("requires a (client )?certificate|no certificate", text):
        return f"set ssl.keystore.type=PEM and ssl.keystore.location {CONFIG_HINT}"
    if "does not speak TLS" in text or "closed the connection" in text:
        return f"it may be a port without TLS: check security.protocol {CONFIG_HINT}"
    return f"see ssl.* {CONFIG_HINT}"
