"""AlterUserScramCredentials: what the controller stores, and what it refuses."""

import pytest
from controller_harness import Harness

from barnabas.base.scram import keys_of, salted_password
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import MetadataVersion
from barnabas.protocol.messages.credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

SALT = b"salt"
SALTED = salted_password("sha256", "secret", SALT, 4096)
SCRAM_256, SCRAM_512 = 1, 2


def setting(
    name: str,
    mechanism: int = SCRAM_256,
    iterations: int = 4096,
    salt: bytes = SALT,
    salted: bytes = SALTED,
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )


def deleting(name: str, mechanism: int = SCRAM_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(
    controller: Harness, *parts: ScramCredentialUpsertion | ScramCredentialDeletion
) -> dict[str, tuple[int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[part for part in parts if isinstance(part, ScramCredentialDeletion)],
        upsertions=[part for part in parts if isinstance(part, ScramCredentialUpsertion)],
    )
    response = controller.do(request)
    results = {each.user: (each.error_code, each.error_message) for each in response.results}
    assert len(results) == len(response.results)
    return results


DONE = (0, None)
TWICE = (
    ErrorCode.DUPLICATE_RESOURCE,
    "A user credential cannot be altered twice in the same request",
)


def test_a_credential_is_set_changed_and_deleted() -> None:
    controller = Harness()
    assert alter(controller, setting("alice"), setting("bob", SCRAM_512)) == {
        "alice": DONE,
        "bob": DONE,
    }
    record = controller.image.scram[SCRAM_256, "alice"]
    assert (record.stored_key, record.server_key) == keys_of("sha256", SALTED)
    assert (record.salt, record.iterations) == (SALT, 4096)
    assert controller.image.scram[SCRAM_512, "bob"].stored_key == keys_of("sha512", SALTED)[0]
    assert alter(controller, deleting("bob", SCRAM_512), setting("alice", iterations=8192)) == {
        "alice": DONE,
        "bob": DONE,
    }
    assert controller.image.scram.keys() == {(SCRAM_256, "alice")}
    assert controller.image.scram[SCRAM_256, "alice"].iterations == 8192


UNACCEPTABLE = ErrorCode.UNACCEPTABLE_CREDENTIAL
REFUSED: dict[str, tuple[ScramCredentialUpsertion | ScramCredentialDeletion, int, str]] = {
    "no name": (setting(""), UNACCEPTABLE, "Username must not be empty"),
    "no name to delete": (deleting(""), UNACCEPTABLE, "Username must not be empty"),
    "long name": (setting("a" * 1025), UNACCEPTABLE, "Username must not be longer than 1024"),
    "few iterations": (setting("a", iterations=4095), UNACCEPTABLE, "Too few iterations"),
    "many iterations": (setting("a", iterations=16385), UNACCEPTABLE, "Too many iterations"),
    "no salt": (setting("a", salt=b""), UNACCEPTABLE, "The salt must have 1 to 1024 bytes"),
    "long salt": (setting("a", salt=bytes(1025)), UNACCEPTABLE, "The salt must have"),
    "no password": (setting("a", salted=b""), UNACCEPTABLE, "The salted password must have"),
    "long password": (setting("a", salted=bytes(1025)), UNACCEPTABLE, "The salted password"),
    "unknown mechanism": (
        setting("a", mechanism=3),
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "Unknown SCRAM mechanism",
    ),
    "unknown mechanism to delete": (
        deleting("a", mechanism=0),
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "Unknown SCRAM mechanism",
    ),
    "nothing to delete": (
        deleting("a"),
        ErrorCode.RESOURCE_NOT_FOUND,
        "Attempt to delete a user credential that does not exist",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    part, code, text = REFUSED[name]
    controller = Harness()
    results = alter(controller, part, setting("alice"))
    assert results["alice"] == DONE
    found, message = results[part.name]
    assert found == code
    assert text in str(message)
    assert controller.image.scram.keys() == {(SCRAM_256, "alice")}


def test_nobody_is_altered_twice_in_a_request() -> None:
    controller = Harness()
    alter(controller, setting("alice"), setting("bob"))
    assert alter(
        controller,
        deleting("alice"),
        setting("alice", SCRAM_512),
        deleting("bob"),
        deleting("bob"),
        setting("carol"),
        setting("carol", SCRAM_512),
        setting("carol"),
        setting("dave"),
    ) == {"alice": TWICE, "bob": TWICE, "carol": TWICE, "dave": DONE}
    assert {name for _, name in controller.image.scram} == {"alice", "bob", "dave"}


def test_the_first_error_of_a_user_is_told() -> None:
    results = alter(Harness(), setting("alice", iterations=1), setting("alice"))
    assert results == {"alice": (UNACCEPTABLE, "Too few iterations")}


def test_metadata_without_scram_has_no_credentials() -> None:
    controller = Harness(MetadataVersion.IBP_3_5_IV1)
    assert alter(controller, setting("alice"), deleting("bob")) == dict.fromkeys(
        ("bob", "alice"),
        (
            ErrorCode.UNSUPPORTED_VERSION,
            "The current metadata.version does not support SCRAM",
        ),
    )
    assert not controller.image.scram


def test_what_is_logged_of_a_request_shows_no_secret() -> None:
    shown = repr(AlterUserScramCredentialsRequest(upsertions=[setting("alice")]))
    assert "alice" in shown
    assert repr(SALTED) not in shown
    assert repr(SALT) not in shown
