"""The response that refuses a whole request: not the controller, or too late."""

from collections.abc import Callable
from typing import Any, Final

from barnabas.protocol.apis import APIS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    acls,
    configs,
    credentials,
    partitions,
    quotas,
)
from barnabas.protocol.messages import topics as topics_messages


def refuse(request: Any, code: ErrorCode, message: str | None = None) -> Any:
    """The response to `request` that says `code` for each of its parts."""
    build = _REFUSALS.get(type(request))
    if build is not None:
        return build(request, code, message or code.message)
    response = _RESPONSE_OF[type(request)](error_code=code)
    if hasattr(response, "error_message"):
        response.error_message = message or code.message
    return response


def _create_topics(request: topics_messages.CreateTopicsRequest, code: int, message: str) -> Any:
    return topics_messages.CreateTopicsResponse(
        topics=[
            topics_messages.CreatableTopicResult(
                name=topic.name, error_code=code, error_message=message
            )
            for topic in request.topics
        ]
    )


def _delete_topics(request: topics_messages.DeleteTopicsRequest, code: int, message: str) -> Any:
    topics = [topics_messages.DeleteTopicState(name=name) for name in request.topic_names]
    return topics_messages.DeleteTopicsResponse(
        responses=[
            topics_messages.DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message
            )
            for topic in topics + request.topics
        ]
    )


def _create_partitions(
    request: topics_messages.CreatePartitionsRequest, code: int, message: str
) -> Any:
    return topics_messages.CreatePartitionsResponse(
        results=[
            topics_messages.CreatePartitionsTopicResult(
                name=topic.name, error_code=code, error_message=message
            )
            for topic in request.topics
        ]
    )


def _alter_configs(request: Any, code: int, message: str) -> Any:
    response = _RESPONSE_OF[type(request)]()
    for resource in request.resources:
        response.responses.append(
            configs.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return response


def _alter_client_quotas(request: quotas.AlterClientQuotasRequest, code: int, message: str) -> Any:
    return quotas.AlterClientQuotasResponse(
        entries=[
            quotas.AlterClientQuotasResponseEntryData(
                error_code=code,
                error_message=message,
                entity=[
                    quotas.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                    for part in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


_RESPONSE_OF: Final[dict[type, Callable[..., Any]]] = {
    api.request: api.response for api in APIS.values()
}
"""For requests whose response has one code for all of it."""


def _elect_leaders(request: partitions.ElectLeadersRequest, code: int, message: str) -> Any:
    return partitions.ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            partitions.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    partitions.PartitionResult(
                        partition_id=number, error_code=code, error_message=message
                    )
                    for number in topic.partitions
                ],
            )
            for topic in request.topic_partitions or []
        ],
    )


def _reassignments(
    request: partitions.AlterPartitionReassignmentsRequest,
    code: int,
    message: str,
) -> Any:
    return partitions.AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        responses=[
            partitions.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    partitions.ReassignablePartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=code,
                        error_message=message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _alter_user_scram_credentials(
    request: credentials.AlterUserScramCredentialsRequest, code: int, message: str
) -> Any:
    names = [part.name for part in request.deletions] + [part.name for part in request.upsertions]
    return credentials.AlterUserScramCredentialsResponse(
        results=[
            credentials.AlterUserScramCredentialsResult(
                user=name, error_code=code, error_message=message
            )
            for name in dict.fromkeys(names)
        ]
    )


def _create_acls(request: acls.CreateAclsRequest, code: int, message: str) -> Any:
    return acls.CreateAclsResponse(
        results=[
            acls.AclCreationResult(error_code=code, error_message=message)
            for _ in request.creations
        ]
    )


def _delete_acls(request: acls.DeleteAclsRequest, code: int, message: str) -> Any:
    return acls.DeleteAclsResponse(
        filter_results=[
            acls.DeleteAclsFilterResult(error_code=code, error_message=message)
            for _ in request.filters
        ]
    )


_REFUSALS: Final[dict[type, Callable[[Any, int, str], Any]]] = {
    topics_messages.CreateTopicsRequest: _create_topics,
    topics_messages.DeleteTopicsRequest: _delete_topics,
    acls.CreateAclsRequest: _create_acls,
    acls.DeleteAclsRequest: _delete_acls,
    topics_messages.CreatePartitionsRequest: _create_partitions,
    quotas.AlterClientQuotasRequest: _alter_client_quotas,
    credentials.AlterUserScramCredentialsRequest: _alter_user_scram_credentials,
    configs.AlterConfigsRequest: _alter_configs,
    configs.IncrementalAlterConfigsRequest: _alter_configs,
    partitions.AlterPartitionReassignmentsRequest: _reassignments,
    partitions.ElectLeadersRequest: _elect_leaders,
}
