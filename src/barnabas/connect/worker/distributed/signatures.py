"""Requests between workers are signed with a key from the config topic (KIP-507).

All workers read it there:

    X-Connect-Authorization: the body's MAC, base 64
    X-Connect-Request-Signature-Algorithm: HmacSHA256

Source: org.apache.kafka.connect.runtime.rest.InternalRequestSignature, and DistributedHerder's
check (Kafka 4.3).
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.connect.config.values import ConfigType, invalid, names, number_of, parse_value
from barnabas.connect.worker.distributed.records import SessionKey
from barnabas.schemas.data.errors import ConfigError

SIGNATURE: Final = "X-Connect-Authorization"
ALGORITHM: Final = "X-Connect-Request-Signature-Algorithm"
_KEY_SIZE: Final = "inter.worker.key.size"
_HASHES: Final = {
    "hmacmd5": ("md5", 64),
    "hmacsha1": ("sha1", 64),
    "hmacsha224": ("sha224", 28),
    "hmacsha256": ("sha256", 32),
    "hmacsha384": ("sha384", 48),
    "hmacsha512": ("sha512", 64),
}
"""Java's names in lower case: the hash, and the size in bytes of the keys that Java makes."""


class SignatureError(Exception):
    """A request between workers is refused, with an HTTP status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(slots=True, frozen=True)
class SigningRules:
    """A worker's `inter.worker.*` settings; `key_size` None is what Java would take."""

    key_algorithm: str = "HmacSHA256"
    key_size_bytes: int | None = None
    key_ttl_ms: int = 3_600_000
    signature_algorithm: str = "HmacSHA256"
    verification_algorithms: Sequence[str] = ("HmacSHA256",)

    @property
    def key_length_bytes(self) -> int:
        """The size of the keys that this worker makes."""
        return self.key_size_bytes or _HASHES[self.key_algorithm.lower()][1]

    def must_renew(self, key: SessionKey | None, now_ms: int) -> bool:
        """Return whether the leader has to make another key."""
        if key is None:
            return True
        if 0 < self.key_ttl_ms <= now_ms - key.created_ms:
            return True
        return key.algorithm != self.key_algorithm or len(key.key) != self.key_length_bytes


def read_rules(settings: Mapping[str, str]) -> SigningRules:
    """Read a worker's settings. Raises ConfigError."""
    default = SigningRules()
    algorithms = settings.get("inter.worker.verification.algorithms", "HmacSHA256")
    size: int | None = parse_value(_KEY_SIZE, settings.get(_KEY_SIZE), ConfigType.INT)
    rules = SigningRules(
        settings.get("inter.worker.key.generation.algorithm", default.key_algorithm),
        None if size is None else (size + 7) // 8,
        number_of(settings, "inter.worker.key.ttl.ms", default.key_ttl_ms),
        settings.get("inter.worker.signature.algorithm", default.signature_algorithm),
        tuple(names(algorithms)),
    )
    named = {
        "inter.worker.key.generation.algorithm": [rules.key_algorithm],
        "inter.worker.signature.algorithm": [rules.signature_algorithm],
        "inter.worker.verification.algorithms": rules.verification_algorithms,
    }
    for name, values in named.items():
        for value in values:
            if value.lower() not in _HASHES:
                known = "there are HmacSHA256, HmacSHA384, HmacSHA512, HmacSHA1, HmacMD5"
                raise invalid(name, value, f"the algorithm is not supported; {known}")
    if not rules.verification_algorithms:
        raise ConfigError(
            "Invalid value [] for configuration inter.worker.verification.algorithms: "
            "At least one signature verification algorithm must be provided"
        )
    if rules.signature_algorithm not in rules.verification_algorithms:
        raise ConfigError(
            "Signature generation algorithm must be in inter.worker.verification.algorithms list"
        )
    return rules


def sign(key: SessionKey, algorithm: str, body: bytes) -> dict[str, str]:
    """Return the headers that sign a body."""
    return {SIGNATURE: base64.b64encode(_mac(key, algorithm, body)).decode(), ALGORITHM: algorithm}


def check(
    rules: SigningRules, key: SessionKey | None, body: bytes, headers: Mapping[str, str]
) -> None:
    """Check a request of another worker. Raises SignatureError, with Kafka's words."""
    given = {name.lower(): value for name, value in headers.items()}
    algorithm, signature = given.get(ALGORITHM.lower()), given.get(SIGNATURE.lower())
    if algorithm is None or signature is None:
        raise SignatureError("Internal request missing required signature", 400)
    if algorithm.lower() not in _HASHES:
        raise SignatureError(f"Algorithm {algorithm} not available", 400)
    try:
        mac = base64.b64decode(signature, validate=True)
    except binascii.Error as error:
        raise SignatureError(f"the signature is not base 64: {error}", 400) from error
    if algorithm not in rules.verification_algorithms:
        raise SignatureError(
            f"This worker does not support the '{algorithm}' key signing algorithm used by other "
            "workers. This worker is currently configured to use: "
            f"[{', '.join(rules.verification_algorithms)}]. Check that all workers' configuration "
            "files permit the same set of signature algorithms, and correct any misconfigured "
            "worker and restart it.",
            400,
        )
    if key is None:
        raise SignatureError(
            "This worker is still starting up and has not been able to read a session key from "
            "the config topic yet",
            503,
        )
    if not hmac.compare_digest(mac, _mac(key, algorithm, body)):
        raise SignatureError("Internal request contained invalid signature.", 403)


def _mac(key: SessionKey, algorithm: str, body: bytes) -> bytes:
    return hmac.digest(key.key, body, _HASHES[algorithm.lower()][0])
