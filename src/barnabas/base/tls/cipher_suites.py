"""Cipher suites by the names that Java gives them, and OpenSSL's own for the same.

Those of TLS 1.3 have one name everywhere. Python cannot choose among them: all three are offered,
or TLS 1.3 is not spoken at all.
"""

import re
from typing import Final

TLS13_SUITES: Final = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"}
)
_JAVA: Final = re.compile(r"(?:TLS|SSL)_(.+)_WITH_(.+)")
_ONLY_SIGNED: Final = "RSA"
_CIPHERS: Final = (
    (re.compile(r"CHACHA20_POLY1305_SHA256"), "CHACHA20-POLY1305"),
    (re.compile(r"(AES|ARIA|CAMELLIA)_(128|256)_GCM_(SHA\d+)"), r"\1\2-GCM-\3"),
    (re.compile(r"(AES|CAMELLIA)_(128|256)_CBC_(SHA\d*)"), r"\1\2-\3"),
    (re.compile(r"(AES)_(128|256)_(CCM|CCM_8)"), r"\1\2-\3"),
)


def openssl_name(java_name: str) -> str | None:
    """OpenSSL's name of a suite of TLS 1.2 or before, None for a name of another form."""
    match = _JAVA.fullmatch(java_name)
    if match is None:
        return java_name if "_" not in java_name else None
    exchange, cipher = match[1], match[2]
    for pattern, replacement in _CIPHERS:
        if pattern.fullmatch(cipher):
            name = pattern.sub(replacement, cipher).replace("_", "")
            prefix = "" if exchange == _ONLY_SIGNED else exchange.replace("_", "-") + "-"
            return prefix + name
    return None


def openssl_suites(text: str) -> str:
    """Cipher suites by OpenSSL's names; those of TLS 1.3, which cannot be chosen, are left out."""
    names = [name.strip() for name in text.split(",")]
    if not all(name.startswith("TLS_") for name in names):
        return text
    suites = [openssl_name(name) for name in names if name not in TLS13_SUITES]
    return ":".join(name for name in suites if name is not None)
