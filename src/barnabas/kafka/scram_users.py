"""SCRAM users, whose credentials the cluster stores (KIP-554).

Functions raise AdminError.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.base.scram import HASHES, MECHANISM_NUMBERS, salted_password
from barnabas.kafka.wire_admin import RefusedError, WireAdmin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

MECHANISMS: Final = tuple(MECHANISM_NUMBERS)
ITERATIONS_DEFAULT: Final = 4096
"""Kafka's own."""
SALT_SIZE_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class Credential:
    """A user's SCRAM credential, without its secrets."""

    mechanism: str
    iterations: int


def list_users(
    admin: WireAdmin, names: Sequence[str] | None = None
) -> dict[str, tuple[Credential, ...]]:
    """All users, or those of `names` that exist."""
    request = DescribeUserScramCredentialsRequest(
        users=None if names is None else [UserName(name=name) for name in names]
    )
    response = admin.decide(request, "users")
    names_of = {number: mechanism for mechanism, number in MECHANISM_NUMBERS.items()}
    found = {}
    for result in response.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if result.error_code != ErrorCode.NONE:
            raise RefusedError(result.error_code, result.error_message, result.user)
        found[result.user] = tuple(
            Credential(names_of.get(info.mechanism, str(info.mechanism)), info.iterations)
            for info in result.credential_infos
        )
    return dict(sorted(found.items()))


def set_password(
    admin: WireAdmin, name: str, password: str, mechanisms: Iterable[str], iterations: int
) -> None:
    """Let a user log in with this password, and no longer with an earlier one.

    The password does not leave this process, only its salted hash.
    """
    for mechanism in mechanisms:
        salt = os.urandom(SALT_SIZE_BYTES)
        upsertion = ScramCredentialUpsertion(
            name=name,
            mechanism=MECHANISM_NUMBERS[mechanism],
            iterations=iterations,
            salt=salt,
            salted_password=salted_password(HASHES[mechanism], password, salt, iterations),
        )
        # One at a time: brokers refuse requests that name a user twice.
        _alter(admin, AlterUserScramCredentialsRequest(upsertions=[upsertion]))


def delete_credentials(admin: WireAdmin, name: str, mechanisms: Iterable[str]) -> None:
    """Take mechanisms from a user; one without any is gone."""
    for mechanism in mechanisms:
        deletion = ScramCredentialDeletion(name=name, mechanism=MECHANISM_NUMBERS[mechanism])
        _alter(admin, AlterUserScramCredentialsRequest(deletions=[deletion]))


def _alter(admin: WireAdmin, request: AlterUserScramCredentialsRequest) -> None:
    response = admin.retry(request, lambda answer: [item.error_code for item in answer.results])
    for result in response.results:
        if result.error_code != ErrorCode.NONE:
            raise RefusedError(result.error_code, result.error_message, result.user)
