"""AlterUserScramCredentials (API 51, version 0; KIP-554).

Each user is decided for itself, and may be named once in a request. What is stored is derived
here from the salted password that the client sends, so that a log of the metadata gives nobody a
login. Source: Kafka's ScramControlManager. Two bounds are ours: nothing may be empty, or longer
than a login could ever use.
"""

from typing import Final

from barnabas.base.scram import HASHES, ITERATIONS_MAX, ITERATIONS_MIN, MECHANISM_NUMBERS, keys_of
from barnabas.node.metadata.controller.decision import ControllerState, Decision, Failure
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.metadata_records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

LENGTH_MAX: Final = 1024
"""Of a name, a salt or a salted password."""
_HASH_OF: Final = {number: HASHES[name] for name, number in MECHANISM_NUMBERS.items()}
_TWICE: Final = Failure(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)


def alter_user_scram_credentials(
    state: ControllerState, request: AlterUserScramCredentialsRequest
) -> Decision[AlterUserScramCredentialsResponse]:
    """Delete and set credentials; a user with an error keeps what there is."""
    outcomes: dict[str, MetadataRecord | Failure] = {}
    for deletion in request.deletions:
        _decide(outcomes, deletion.name, _delete(state, deletion))
    for upsertion in request.upsertions:
        _decide(outcomes, upsertion.name, _set(state, upsertion))
    results = []
    records = []
    for name, outcome in outcomes.items():
        if isinstance(outcome, Failure):
            code, message = outcome
            results.append(
                AlterUserScramCredentialsResult(user=name, error_code=code, error_message=message)
            )
        else:
            results.append(AlterUserScramCredentialsResult(user=name, error_message=None))
            records.append(outcome)
    return Decision(AlterUserScramCredentialsResponse(results=results), records)


def _decide(
    outcomes: dict[str, MetadataRecord | Failure], name: str, outcome: MetadataRecord | Failure
) -> None:
    """Note what one part of the request leads to; the first error of a user stays."""
    before = outcomes.get(name)
    if before is None:
        outcomes[name] = outcome
    elif not isinstance(before, Failure):
        outcomes[name] = _TWICE


def _delete(state: ControllerState, deletion: ScramCredentialDeletion) -> MetadataRecord | Failure:
    failure = _refusal(state, deletion.name, deletion.mechanism)
    if failure is not None:
        return failure
    if (deletion.mechanism, deletion.name) not in state.image.scram:
        return Failure(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )
    return MetadataRecord(
        RemoveUserScramCredentialRecord(name=deletion.name, mechanism=deletion.mechanism)
    )


def _set(state: ControllerState, upsertion: ScramCredentialUpsertion) -> MetadataRecord | Failure:
    failure = _refusal(state, upsertion.name, upsertion.mechanism)
    if failure is not None:
        return failure
    if upsertion.iterations < ITERATIONS_MIN:
        return _unacceptable("Too few iterations")
    if upsertion.iterations > ITERATIONS_MAX:
        return _unacceptable("Too many iterations")
    if not 0 < len(upsertion.salt) <= LENGTH_MAX:
        return _unacceptable(f"The salt must have 1 to {LENGTH_MAX} bytes")
    if not 0 < len(upsertion.salted_password) <= LENGTH_MAX:
        return _unacceptable(f"The salted password must have 1 to {LENGTH_MAX} bytes")
    keys = keys_of(_HASH_OF[upsertion.mechanism], upsertion.salted_password)
    return MetadataRecord(
        UserScramCredentialRecord(
            name=upsertion.name,
            mechanism=upsertion.mechanism,
            salt=upsertion.salt,
            stored_key=keys.stored_key,
            server_key=keys.server_key,
            iterations=upsertion.iterations,
        )
    )


def _refusal(state: ControllerState, name: str, mechanism: int) -> Failure | None:
    """Why a name and mechanism can have no credential."""
    if not state.image.metadata_version.has_scram:
        return Failure(
            ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"
        )
    if not name:
        return _unacceptable("Username must not be empty")
    if len(name) > LENGTH_MAX:
        return _unacceptable(f"Username must not be longer than {LENGTH_MAX} characters")
    if mechanism not in _HASH_OF:
        return Failure(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return None


def _unacceptable(message: str) -> Failure:
    return Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)
