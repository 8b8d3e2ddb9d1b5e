"""SCRAM users as commands work with them, and the requests that list, change and delete them."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from barnabas.cli.admin import Admin
from barnabas.cli.errors import from_code
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_ALGORITHMS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
"""What brokers take."""
SALT_SIZE_BYTES = 24


@dataclass(frozen=True, slots=True)
class Credential:
    """That a user can log in by a mechanism."""

    mechanism: str
    iterations: int


def list_users(
    admin: Admin, names: Sequence[str] | None = None
) -> dict[str, tuple[Credential, ...]]:
    """All users, or those of `names` that exist. Raises CliError."""
    request = DescribeUserScramCredentialsRequest(
        users=None if names is None else [UserName(name=name) for name in names]
    )
    response = admin.decide(request, "users")
    names_of = {number: mechanism for mechanism, number in MECHANISMS.items()}
    found = {}
    for result in response.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if result.error_code != ErrorCode.NONE:
            raise from_code(result.error_code, result.error_message, result.user)
        found[result.user] = tuple(
            Credential(names_of.get(info.mechanism, str(info.mechanism)), info.iterations)
            for info in result.credential_infos
        )
    return dict(sorted(found.items()))


def set_password(
    admin: Admin, name: str, password: str, mechanisms: Iterable[str], iterations: int
) -> None:
    """Let a user log in with this password, and no longer with an earlier one. Raises CliError.

    The password does not leave this process, only its salted hash (KIP-554).
    """
    for mechanism in mechanisms:
        salt = os.urandom(SALT_SIZE_BYTES)
        salted = hashlib.pbkdf2_hmac(_ALGORITHMS[mechanism], password.encode(), salt, iterations)
        upsertion = ScramCredentialUpsertion(
            name=name,
            mechanism=MECHANISMS[mechanism],
            iterations=iterations,
            salt=salt,
            salted_password=salted,
        )
        # One at a time: brokers refuse requests that name a user twice.
        _alter(admin, AlterUserScramCredentialsRequest(upsertions=[upsertion]))


def delete_credentials(admin: Admin, name: str, mechanisms: Iterable[str]) -> None:
    """Take mechanisms from a user; one without any is gone. Raises CliError."""
    for mechanism in mechanisms:
        deletion = ScramCredentialDeletion(name=name, mechanism=MECHANISMS[mechanism])
        _alter(admin, AlterUserScramCredentialsRequest(deletions=[deletion]))


def _alter(admin: Admin, request: AlterUserScramCredentialsRequest) -> None:
    response = admin.retry(request, lambda answer: [item.error_code for item in answer.results])
    for result in response.results:
        if result.error_code != ErrorCode.NONE:
            raise from_code(result.error_code, result.error_message, result.user)
