"""SCRAM-SHA-256 and SCRAM-SHA-512, as the side that is logged in to.

The server keeps no password, only keys that verify a proof, and a login costs it four hashes. A
user that is not known gets an answer like everybody's, with a salt that is always the same on every
node, and fails where a wrong password does.

Source: RFC 5802, RFC 7677, and Kafka's ScramSaslServer. As in Kafka, names are ASCII; of those
SASLprep (RFC 4013) changes none and forbids control characters, which are refused here. A client
may say that it knows channel binding (`y`) as no listener offers it; one that asks for it (`p=`)
is refused.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from barnabas.base.scram import HASHES, ITERATIONS_MIN, proves
from barnabas.node.security.principal import USER, Principal
from barnabas.node.security.sasl.mechanism import (
    AuthenticationError,
    Exchange,
    InvalidCredentialsError,
    Login,
)

MESSAGE_SIZE_MAX_BYTES: Final = 4096
"""No login needs more; what is longer is not searched for patterns."""
NONCE_SIZE_BYTES: Final = 24
TOKEN_EXTENSION: Final = "tokenauth"
_NAME: Final = r"(?:[ -+\--<>-~]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>(?:n|y|(?P<binding>p=[^,]*)),(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


class Credential(Protocol):
    """The stored form of a password, as in a metadata record."""

    @property
    def salt(self) -> bytes:
        """With which the password was hashed."""

    @property
    def iterations(self) -> int:
        """The number of iterations of the hash."""

    @property
    def stored_key(self) -> bytes:
        """Verifies the client's proof."""

    @property
    def server_key(self) -> bytes:
        """Proves the server to the client."""


@dataclass(frozen=True, slots=True)
class TokenCredential:
    """A delegation token (KIP-48): its owner logs in with its id and HMAC."""

    owner: Principal
    expires_at_ms: int
    credential: Credential


@dataclass(frozen=True, slots=True)
class UnknownUser:
    """Stands for the credential of a user that is not known."""

    salt: bytes
    iterations: int = ITERATIONS_MIN
    stored_key: bytes = b""
    server_key: bytes = b""


class ScramMechanism:
    """A `Mechanism` over credentials that may change at any time."""

    def __init__(
        self,
        name: str,
        user: Callable[[str], Credential | None],
        randbytes: Callable[[int], bytes],
        token: Callable[[str], TokenCredential | None] = lambda _: None,
        like: Callable[[], Credential | None] = lambda: None,
    ) -> None:
        """`user` and `token` find what is stored by a user's name and a delegation token's id.

        `like` gives a credential that all nodes have, for what unknown users are answered.
        """
        self.name = name
        self.algorithm = HASHES[name]
        self.user = user
        self.token = token
        self._like = like
        self.randbytes = randbytes
        self._salts_key = randbytes(32)

    def begin(self) -> Exchange:
        return ScramExchange(self)

    def unknown(self, name: str) -> Credential:
        """The credential that stands for an unknown user, the same at every attempt and on every
        node.

        Two nodes that answered with two salts would tell that there is no such user.
        """
        like = self._like()
        if like is None:
            key, size_bytes, iterations = self._salts_key, NONCE_SIZE_BYTES, ITERATIONS_MIN
        else:
            key = hmac.digest(like.server_key, b"salts of unknown users", "sha256")
            size_bytes, iterations = len(like.salt), max(like.iterations, ITERATIONS_MIN)
        salt = hmac.digest(key, name.encode(), "sha512")[:size_bytes]
        return UnknownUser(salt, iterations)


class ScramExchange:
    """Two messages from the client, and an answer to each."""

    __slots__ = (
        "_awaited",
        "_client_nonce",
        "_credential",
        "_first",
        "_header",
        "_mechanism",
        "_nonce",
        "login",
    )

    def __init__(self, mechanism: ScramMechanism) -> None:
        self._mechanism = mechanism
        self._credential: Credential | None = None
        """Set once the first message was answered."""
        self._awaited: Login | None = None
        """The principal once the proof is correct."""
        self._header = b""
        self._first = ""
        """Both first messages, as the proof covers them."""
        self._client_nonce = ""
        self._nonce = ""
        self.login: Login | None = None

    def respond(self, message: bytes) -> bytes:
        if len(message) > MESSAGE_SIZE_MAX_BYTES:
            raise InvalidCredentialsError(f"a SCRAM message of {len(message)} bytes")
        if self.login is not None:
            raise InvalidCredentialsError("a SCRAM message after the last")
        if self._credential is None:
            return self._begin(message)
        return self._finish(message, self._credential)

    def _begin(self, message: bytes) -> bytes:
        match = _CLIENT_FIRST.fullmatch(message.decode("utf-8", "replace"))
        if match is None:
            raise InvalidCredentialsError("the client's first SCRAM message has another format")
        if match["binding"] is not None:
            raise InvalidCredentialsError("the client asks for channel binding")
        name = _unescaped(match["name"])
        mechanism = self._mechanism
        credential: Credential | None
        if _extensions(match["extensions"]).get(TOKEN_EXTENSION, "").lower() == "true":
            token = mechanism.token(name)
            credential = None if token is None else token.credential
            if token is not None:
                self._awaited = Login(token.owner, token.expires_at_ms, is_token=True)
        else:
            credential = mechanism.user(name)
            if credential is not None:
                self._awaited = Login(Principal(USER, name))
        authorization_id = match["authzid"]
        if authorization_id is not None and _unescaped(authorization_id) != name:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        if credential is None:
            credential = mechanism.unknown(name)
        elif credential.iterations < ITERATIONS_MIN:
            raise InvalidCredentialsError(
                f"{credential.iterations} iterations of {name!r} are less than {ITERATIONS_MIN}"
            )
        self._credential = credential
        self._header = match["header"].encode()
        self._client_nonce = match["nonce"]
        self._nonce = self._client_nonce + _text(mechanism.randbytes(NONCE_SIZE_BYTES))
        answer = f"r={self._nonce},s={_text(credential.salt)},i={credential.iterations}"
        self._first = f"{match['bare']},{answer}"
        return answer.encode()

    def _other_nonce(self, given: str) -> str:
        """Say what is wrong with the final message's nonce; names librdkafka's issue 4895."""
        if given == self._client_nonce + self._nonce:
            return (
                "the client's final SCRAM message has the client's nonce twice, a defect of "
                "librdkafka before 2.6.1 (kcat 1.7.1 has it): use a newer client"
            )
        return "the client's final SCRAM message has another nonce than the server's"

    def _finish(self, message: bytes, credential: Credential) -> bytes:
        match = _CLIENT_FINAL.fullmatch(message.decode("utf-8", "replace"))
        if match is None:
            raise InvalidCredentialsError("the client's final SCRAM message has another format")
        if not hmac.compare_digest(match["nonce"].encode(), self._nonce.encode()):
            raise InvalidCredentialsError(self._other_nonce(match["nonce"]))
        if _bytes(match["binding"]) != self._header:
            raise InvalidCredentialsError("the client's final SCRAM message has another header")
        signed = f"{self._first},{match['bare']}".encode()
        algorithm = self._mechanism.algorithm
        is_proven = proves(algorithm, credential.stored_key, signed, _bytes(match["proof"]))
        if not is_proven or self._awaited is None:
            raise InvalidCredentialsError("no such user, or another password")
        self.login = self._awaited
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, signed, algorithm))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    """Base64 that says the same in no other way: bits behind the last byte are 0."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise InvalidCredentialsError("a SCRAM message has no base64") from error
    if _text(data) != text:
        raise InvalidCredentialsError("a SCRAM message has no base64")
    return data


def _unescaped(name: str) -> str:
    """A user's name; the pattern has seen to it that `=` begins an escape."""
    return name.replace("=2C", ",").replace("=3D", "=")


def _extensions(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {name: value for name, _, value in pairs}
