"""Controller responses fitted to the version of the request.

Decisions know no versions. A broker's listener, the controller's own and envelopes all need this.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import CreateDelegationTokenResponse
from barnabas.protocol.messages.nodes import UpdateFeaturesResponse
from barnabas.protocol.messages.partitions import ElectLeadersResponse
from barnabas.protocol.messages.topics import DeleteTopicsResponse
from barnabas.protocol.messages.voters import DescribeQuorumResponse
from barnabas.protocol.schema import Message

M = TypeVar("M", bound=Message)

DIRECTORIES_FROM = 2
"""DescribeQuorum names nodes' endpoints and replicas' directories since KIP-853."""
REQUESTER_FROM = 3
"""Since KIP-373 the requester of a delegation token may differ from its owner."""
TOPIC_DELETION_DISABLED_FROM = 3
ELECTION_CODE_FROM = 1
RESULTS_UNTIL = 1
"""From version 2 on all updates succeed or fail together, and the whole has one error."""


def fit(response: M, version: int) -> M:
    """Change `response` into what `version` has; returns it."""
    change = _FIT.get(type(response))
    if change is not None:
        change(response, version)
    return response


def _describe_quorum(response: DescribeQuorumResponse, version: int) -> None:
    if version >= DIRECTORIES_FROM:
        return
    response.nodes = []
    for topic in response.topics:
        for partition in topic.partitions:
            for replica in (*partition.current_voters, *partition.observers):
                replica.replica_directory_id = ZERO_UUID


def _elect_leaders(response: ElectLeadersResponse, version: int) -> None:
    if version < ELECTION_CODE_FROM:
        response.error_code = ErrorCode.NONE  # each partition has it


def _update_features(response: UpdateFeaturesResponse, version: int) -> None:
    if version > RESULTS_UNTIL:
        response.results = []


def _delete_topics(response: DeleteTopicsResponse, version: int) -> None:
    if version < TOPIC_DELETION_DISABLED_FROM:
        for result in response.responses:
            if result.error_code == ErrorCode.TOPIC_DELETION_DISABLED:
                result.error_code = ErrorCode.INVALID_REQUEST


def _create_delegation_token(response: CreateDelegationTokenResponse, version: int) -> None:
    if version < REQUESTER_FROM:
        response.token_requester_principal_type = ""
        response.token_requester_principal_name = ""


_FIT: dict[type, Callable[[Any, int], None]] = {
    CreateDelegationTokenResponse: _create_delegation_token,
    DeleteTopicsResponse: _delete_topics,
    DescribeQuorumResponse: _describe_quorum,
    ElectLeadersResponse: _elect_leaders,
    UpdateFeaturesResponse: _update_features,
}
