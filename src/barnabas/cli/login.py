"""How commands connect with our own protocol client: TLS and SASL from a client's configuration.

And what went wrong there, in one line that says what to do about it.
"""

import asyncio
import logging
import secrets
import ssl
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from barnabas.base.clock import SystemClock
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.base.tls.words import TlsError
from barnabas.cli.client_config import TOKEN_KEY
from barnabas.cli.errors import CliError, ExitCode
from barnabas.kafka.security import Login as NameAndPassword
from barnabas.kafka.security import Security
from barnabas.kafka.setting_names import MECHANISMS
from barnabas.node.net.client import Peer
from barnabas.node.net.dialing import PLAIN_DIALING, Dialing
from barnabas.node.net.login import Login, LoginError, PlainLogin, ScramLogin
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.messages.metadata import MetadataRequest

logging.getLogger("barnabas").addHandler(logging.NullHandler())  # commands say what goes wrong

CLIENT_ID: Final = "barnabas-cli"
NONCE_SIZE_BYTES: Final = 24
HANDSHAKE_TIMEOUT_MS: Final = 10_000
CONFIG_HINT: Final = "in the file of --command-config, or with -X"


class Terms:
    """TLS as this client speaks it."""

    handshake_timeout_ms = HANDSHAKE_TIMEOUT_MS

    def __init__(self, security: Security) -> None:
        """Raises ConfigError where a file or key cannot be used."""
        self._context = security.tls()

    def context(self) -> ssl.SSLContext:
        return self._context


def dialing_for(config: Mapping[str, str]) -> Dialing:
    """How connections are opened. Raises ConfigError for what is not spoken here or not whole."""
    security = Security(PropertyKeys(config))
    login = security.login()
    tls = Terms(security) if security.has_tls else None
    if login is None:
        return PLAIN_DIALING if tls is None else Dialing(tls=tls)
    assert security.mechanism is not None
    return Dialing(login=_login(security.mechanism, login, is_token=TOKEN_KEY in config), tls=tls)


def check(host: str, port: int, config: Mapping[str, str], timeout_s: float) -> None:
    """Connect and log in once. Raises CliError where that is refused; other failures are others'.

    Where this cannot log in as the configuration says, nothing is checked. Raises ConfigError.
    """
    if Security(PropertyKeys(config)).mechanism not in (None, *MECHANISMS):
        return
    if "ssl.keystore.location" in config and find_spec("cryptography") is None:
        return  # librdkafka reads PKCS 12 by itself
    dialing = dialing_for(config)

    async def ask() -> None:
        peer = Peer(
            TcpNetwork(),
            SystemClock(),
            host,
            port,
            client_id=CLIENT_ID,
            request_timeout_ms=int(timeout_s * 1000),
            dialing=dialing,
        )
        try:
            # The first request that is not answered before a login.
            await peer.send(MetadataRequest(topics=[]))
        finally:
            peer.close()

    try:
        asyncio.run(ask())
    except OSError as error:
        known = refusal(error, f"{host}:{port}", config)
        if known is not None:
            raise known from error


def _login(mechanism: str, login: NameAndPassword, *, is_token: bool) -> Login:
    if mechanism == "PLAIN":
        return PlainLogin(login.user, login.password)
    extensions = {"tokenauth": "true"} if is_token else None
    return ScramLogin(
        mechanism,
        login.user,
        login.password,
        lambda: secrets.token_hex(NONCE_SIZE_BYTES),
        extensions,
    )


def refusal(error: OSError, where: str, config: Mapping[str, str]) -> CliError | None:
    """What a failed connection means, and what to do; None where it is only unreachable."""
    if isinstance(error, LoginError):
        hint = f"check the name, password and sasl.mechanism {CONFIG_HINT}"
        return CliError(str(error), ExitCode.REFUSED, hint)
    if isinstance(error, TlsError):
        return CliError(
            f"{where}: {_without(str(error), where)}",
            ExitCode.REFUSED,
            _tls_hint(str(error), where),
        )
    if not isinstance(error, ConnectionRefusedError) and isinstance(error, ConnectionError):
        if Security(PropertyKeys(config)).protocol == "PLAINTEXT":
            hint = f"if it wants TLS or a login, set security.protocol {CONFIG_HINT}"
        else:
            hint = f"its port may want another: check security.protocol {CONFIG_HINT}"
        return CliError(f"{where}: it closed the connection", ExitCode.UNREACHABLE, hint)
    return None


def _without(text: str, where: str) -> str:
    for head in (f"no TLS with {where}: ", f"the connection to {where} was lost: "):
        text = text.removeprefix(head)
    return text


def _tls_hint(text: str, where: str) -> str:
    if "hostname" in text.lower() or "ip address" in text.lower():
        return f"use a name that the certificate has: barnabas cert show {where} lists them"
    if "issuer" in text or "self" in text or "signed" in text:
        return f"name the authority's PEM file as ssl.truststore.location {CONFIG_HINT}"
    if "expired" in text:
        return f"renew it: barnabas cert show {where} tells more"
    if "certificate of ours" in text or "wants a certificate" in text or "no certificate" in text:
        return f"set ssl.keystore.type=PEM and ssl.keystore.location {CONFIG_HINT}"
    if "does not speak TLS" in text or "closed the connection" in text:
        return f"it may be a port without TLS: check security.protocol {CONFIG_HINT}"
    return f"see ssl.* {CONFIG_HINT}"
