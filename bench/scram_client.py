"""A client that opens connections, logs in by SCRAM-SHA-512 and leaves, one after the other.

`python -m bench.scram_client PORT SECONDS` prints how many a second as JSON. The password is hashed
once for each salt, as clients do that reconnect; what is left is what a server has to answer.
"""

import base64
import hmac
import json
import socket
import sys
import time
from functools import lru_cache

from barnabas.base.scram import ScramKeys, keys_of, salted_password
from barnabas.protocol.apis import SASL_AUTHENTICATE, SASL_HANDSHAKE
from barnabas.protocol.codec import decode_at
from barnabas.protocol.frames import decode_response_header, encode_request
from barnabas.protocol.messages.credentials import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
)

MECHANISM, ALGORITHM = "SCRAM-SHA-512", "sha512"
USER, PASSWORD = "alice", "alice-secret"
SCRAM_USER = f"{MECHANISM}=[name={USER},password={PASSWORD}]"
"""As `storage format --add-scram` takes it."""
FIRST = f"n={USER},r=fyko+d2lbbFgONRv9qkxdawL"


def framed(
    key: int, version: int, request: SaslHandshakeRequest | SaslAuthenticateRequest
) -> bytes:
    body = encode_request(key, version, 1, "bench", request)
    return len(body).to_bytes(4, "big") + body


HANDSHAKE = framed(SASL_HANDSHAKE.key, 1, SaslHandshakeRequest(mechanism=MECHANISM))
CLIENT_FIRST = framed(
    SASL_AUTHENTICATE.key, 2, SaslAuthenticateRequest(auth_bytes=f"n,,{FIRST}".encode())
)


@lru_cache
def keys(salt: bytes, iterations: int) -> tuple[bytes, ScramKeys]:
    salted = salted_password(ALGORITHM, PASSWORD, salt, iterations)
    return hmac.digest(salted, b"Client Key", ALGORITHM), keys_of(ALGORITHM, salted)


def ask(sock: socket.socket, request: bytes) -> bytes:
    sock.sendall(request)
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        part = sock.recv(4096)
        if not part:
            raise ConnectionError("the server closed the connection")
        data += part
    return data[4:]


def answered(data: bytes) -> bytes:
    _, position = decode_response_header(SASL_AUTHENTICATE, 2, data)
    response, _ = decode_at(SaslAuthenticateResponse, 2, data, position)
    if response.error_code:
        raise ConnectionError(response.error_message)
    return response.auth_bytes


def log_in(port: int) -> None:
    """Raises ConnectionError."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask(sock, HANDSHAKE)
        challenge = answered(ask(sock, CLIENT_FIRST)).decode()
        nonce, salt, iterations = (part[2:] for part in challenge.split(","))
        client_key, stored = keys(base64.b64decode(salt), int(iterations))
        bare = f"c=biws,r={nonce}"
        signature = hmac.digest(
            stored.stored_key, f"{FIRST},{challenge},{bare}".encode(), ALGORITHM
        )
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        final = f"{bare},p={base64.b64encode(proof).decode()}".encode()
        request = framed(SASL_AUTHENTICATE.key, 2, SaslAuthenticateRequest(auth_bytes=final))
        answered(ask(sock, request))


def main(port: int, seconds: float) -> None:
    count = 0
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < seconds:
        log_in(port)
        count += 1
    json.dump({"connections_s": count / elapsed}, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
