"""DescribeUserScramCredentials: the users that it lists, and its errors."""

from types import SimpleNamespace
from typing import Any, cast

from barnabas.node.broker.apis.logins import handle_describe_user_scram_credentials
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import DescribeUserScramCredentialsRequest, UserName
from barnabas.protocol.messages.metadata_records import UserScramCredentialRecord


def stored(iterations: int) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(iterations=iterations, salt=b"salt", stored_key=b"key")


IMAGE = MetadataImage(
    scram={(2, "alice"): stored(8192), (1, "alice"): stored(4096), (1, "bob"): stored(5000)}
)


def describe(*names: str) -> dict[str, tuple[int, str | None, list[tuple[int, int]]]]:
    services = cast(Any, SimpleNamespace(authorizer=ALLOW_ALL, image=IMAGE))
    request = DescribeUserScramCredentialsRequest(
        users=[UserName(name=name) for name in names] or None
    )
    response = handle_describe_user_scram_credentials(services, cast(Any, None), request)
    assert (response.error_code, response.error_message) == (0, None)
    return {
        result.user: (
            result.error_code,
            result.error_message,
            [(info.mechanism, info.iterations) for info in result.credential_infos],
        )
        for result in response.results
    }


ALICE = (0, None, [(1, 4096), (2, 8192)])
BOB = (0, None, [(1, 5000)])


def test_all_users_are_told_where_none_is_named() -> None:
    assert describe() == {"alice": ALICE, "bob": BOB}


def test_unknown_users_and_those_named_twice_have_errors_of_their_own() -> None:
    assert describe("bob", "carol", "alice", "bob") == {
        "alice": ALICE,
        "bob": (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
            [],
        ),
        "carol": (
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: carol",
            [],
        ),
    }
