"""How commands connect with our own protocol client: TLS and SASL from a client's configuration.

And what went wrong there, in one line that says what to do about it.
"""

import asyncio
import logging
import os
import secrets
import ssl
from collections.abc import Mapping
from typing import Final

from barnabas.base.clock import SystemClock
from barnabas.base.tls.contexts import key_file
from barnabas.cli.client_config import TOKEN_KEY
from barnabas.cli.errors import CliError, ExitCode
from barnabas.node.net.client import Peer
from barnabas.node.net.dialing import PLAIN_DIALING, Dialing
from barnabas.node.net.login import Login, LoginError, PlainLogin, ScramLogin
from barnabas.node.net.tcp import TcpNetwork
from barnabas.node.net.tls_words import TlsError
from barnabas.protocol.messages.metadata import MetadataRequest

logging.getLogger("barnabas").addHandler(logging.NullHandler())  # commands say what goes wrong

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""What this client logs in by. librdkafka knows more."""
CLIENT_ID: Final = "barnabas-cli"
NONCE_SIZE_BYTES: Final = 24
HANDSHAKE_TIMEOUT_MS: Final = 10_000
CONFIG_HINT: Final = "in the file of --command-config, or with -X"


class Terms:
    """TLS as this client speaks it."""

    handshake_timeout_ms = HANDSHAKE_TIMEOUT_MS

    def __init__(self, config: Mapping[str, str]) -> None:
        """Raises CliError where a file or key cannot be used."""
        self._context = _context(config)

    def context(self) -> ssl.SSLContext:
        return self._context


def protocol_of(config: Mapping[str, str]) -> str:
    """The security protocol. Raises CliError for one that does not exist."""
    protocol = config.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise CliError(
            f"security.protocol: there is no {protocol}",
            ExitCode.USAGE,
            f"choose of {', '.join(PROTOCOLS)}",
        )
    return protocol


def mechanism_of(config: Mapping[str, str]) -> str | None:
    """The SASL mechanism by which to log in, None where none is asked for."""
    if not protocol_of(config).startswith("SASL_"):
        return None
    return config.get("sasl.mechanism", config.get("sasl.mechanisms", "GSSAPI")).upper()


def dialing_for(config: Mapping[str, str]) -> Dialing:
    """How connections are opened. Raises CliError for what is not spoken here or not whole."""
    protocol = protocol_of(config)
    if protocol == "PLAINTEXT":
        return PLAIN_DIALING
    tls = Terms(config) if protocol.endswith("SSL") else None
    return Dialing(login=_login(config), tls=tls)


def check(host: str, port: int, config: Mapping[str, str], timeout_s: float) -> None:
    """Connect and log in once. Raises CliError where that is refused; other failures are others'.

    Where this cannot log in as the configuration says, nothing is checked.
    """
    if mechanism_of(config) not in (None, *MECHANISMS) or "ssl.keystore.location" in config:
        return
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


def _login(config: Mapping[str, str]) -> Login | None:
    mechanism = mechanism_of(config)
    if mechanism is None:
        return None
    if mechanism not in MECHANISMS:
        raise CliError(
            f"this command cannot log in by sasl.mechanism={mechanism}",
            hint="use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
        )
    user, password = config.get("sasl.username"), config.get("sasl.password")
    if not user or not password:
        raise CliError(
            f"{mechanism} needs a name and a password",
            ExitCode.USAGE,
            f"set sasl.jaas.config, or sasl.username and sasl.password, {CONFIG_HINT}",
        )
    if mechanism == "PLAIN":
        return PlainLogin(user, password)
    extensions = {"tokenauth": "true"} if TOKEN_KEY in config else None
    return ScramLogin(
        mechanism, user, password, lambda: secrets.token_hex(NONCE_SIZE_BYTES), extensions
    )


def _context(config: Mapping[str, str]) -> ssl.SSLContext:
    trusted = config.get("ssl.ca.location") or None
    if trusted == "probe":
        trusted = None
    is_directory = trusted is not None and os.path.isdir(trusted)
    try:
        context = ssl.create_default_context(
            cafile=None if is_directory else trusted,
            capath=trusted if is_directory else None,
            cadata=config.get("ssl.ca.pem"),
        )
    except (ssl.SSLError, OSError) as error:
        raise CliError(
            f"ssl.ca.location: {trusted or 'the certificates'} cannot be used: {_why(error)}",
            ExitCode.USAGE,
            "it is to be a PEM file with the authority's certificate",
        ) from error
    if config.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if config.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_own(context, config)
    return context


def _load_own(context: ssl.SSLContext, config: Mapping[str, str]) -> None:
    if "ssl.keystore.location" in config:
        raise CliError(
            "ssl.keystore.location: this command reads PEM files alone",
            hint="turn it into PEM (`openssl pkcs12`) and set ssl.keystore.type=PEM",
        )
    password = config.get("ssl.key.password", "")
    certificate, key = config.get("ssl.certificate.location"), config.get("ssl.key.location")
    inline = config.get("ssl.key.pem", "") + "\n" + config.get("ssl.certificate.pem", "")
    try:
        if certificate:
            context.load_cert_chain(certificate, key or None, password=lambda: password)
        elif inline.strip():
            with key_file(inline) as path:
                context.load_cert_chain(path, password=lambda: password)
    except (ssl.SSLError, OSError, ValueError) as error:
        name = "ssl.certificate.location" if certificate else "ssl.certificate.pem"
        raise CliError(f"{name}: it cannot be used: {_why(error)}", ExitCode.USAGE) from None


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(reason).replace("_", " ").lower()


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
        if protocol_of(config) == "PLAINTEXT":
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
