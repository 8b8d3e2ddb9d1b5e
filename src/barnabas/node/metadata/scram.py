"""SCRAM credentials given to `storage format --add-scram`, as records (KIP-900, RFC 5802).

`SCRAM-SHA-256=[name=alice,password=alice-secret]`, with optional `iterations` and `salt`, or with
`saltedpassword` (and then `salt`) in the place of the password, both in base64.
"""

import base64
import binascii

from barnabas.base.scram import (
    HASHES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_NUMBERS,
    keys_of,
    salted_password,
)
from barnabas.node.metadata.ids import RandomSource
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.messages.metadata_records import UserScramCredentialRecord

ITERATIONS_DEFAULT = 4096
SALT_SIZE_BYTES = 24


class ScramError(ValueError):
    """An --add-scram argument that makes no credential."""


def parse_scram(argument: str, random: RandomSource) -> MetadataRecord:
    """The record for one --add-scram argument. Raises ScramError."""
    mechanism, equals, text = argument.strip().partition("=")
    if not equals:
        raise ScramError("Failed to find equals sign in SCRAM argument")
    if mechanism not in HASHES:
        raise ScramError(f"The add-scram mechanism {mechanism} is not supported.")
    if not (text.startswith("[") and text.endswith("]")):
        raise ScramError("Expected configuration string to start with [ and end with ]")
    values = _components(text[1:-1])
    algorithm = HASHES[mechanism]
    iterations = _iterations(values.get("iterations"))
    salt = (
        _base64(values["salt"], "salt") if "salt" in values else random.randbytes(SALT_SIZE_BYTES)
    )
    if "password" in values:
        salted = salted_password(algorithm, values["password"], salt, iterations)
    else:
        salted = _base64(values["saltedpassword"], "saltedpassword")
    keys = keys_of(algorithm, salted)
    record = UserScramCredentialRecord(
        name=values["name"],
        mechanism=MECHANISM_NUMBERS[mechanism],
        salt=salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=iterations,
    )
    return MetadataRecord(record)


def _components(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            # It may be a part of a password, which is not shown.
            raise ScramError(f"No equals sign found in SCRAM component {len(values) + 1}")
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        values[name] = value
    unknown = values.keys() - {"name", "salt", "iterations", "password", "saltedpassword"}
    if unknown:
        raise ScramError(f"Unknown SCRAM configurations: {', '.join(sorted(unknown))}")
    if "name" not in values:
        raise ScramError("You must supply 'name' to add-scram")
    if ("password" in values) == ("saltedpassword" in values):
        raise ScramError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if "saltedpassword" in values and "salt" not in values:
        raise ScramError("You must supply 'salt' with 'saltedpassword' to add-scram")
    return values


def _iterations(text: str | None) -> int:
    if text is None:
        return ITERATIONS_DEFAULT
    try:
        iterations = int(text)
    except ValueError as error:
        raise ScramError(f"Failed to parse iterations count: {text}") from error
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ScramError(
            f"The 'iterations' value must be between {ITERATIONS_MIN} and {ITERATIONS_MAX}"
        )
    return iterations


def _base64(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ScramError(f"Failed to decode given {what}") from error
