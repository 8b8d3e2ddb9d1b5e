"""The response that refuses a whole request: not the controller, or too late."""

from collections.abc import Callable
from typing import Any, Final

from barnabas.protocol.apis import APIS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_quorum,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
    unregister_broker,
    update_features,
)


def refuse(request: Any, code: ErrorCode, message: str | None = None) -> Any:
    """The response to `request` that says `code` for each of its parts."""
    build = _REFUSALS.get(type(request))
    if build is not None:
        return build(request, code, message or code.message)
    response = _RESPONSE_OF[type(request)](error_code=code)
    if hasattr(response, "error_message"):
        response.error_message = message or code.message
    return response


def _create_topics(request: create_topics.CreateTopicsRequest, code: int, message: str) -> Any:
    return create_topics.CreateTopicsResponse(
        topics=[
            create_topics.CreatableTopicResult(
                name=topic.name, error_code=code, error_message=message
            )
            for topic in request.topics
        ]
    )


def _delete_topics(request: delete_topics.DeleteTopicsRequest, code: int, message: str) -> Any:
    topics = [delete_topics.DeleteTopicState(name=name) for name in request.topic_names]
    return delete_topics.DeleteTopicsResponse(
        responses=[
            delete_topics.DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message
            )
            for topic in topics + request.topics
        ]
    )


def _create_partitions(
    request: create_partitions.CreatePartitionsRequest, code: int, message: str
) -> Any:
    return create_partitions.CreatePartitionsResponse(
        results=[
            create_partitions.CreatePartitionsTopicResult(
                name=topic.name, error_code=code, error_message=message
            )
            for topic in request.topics
        ]
    )


def _alter_configs(request: Any, code: int, message: str) -> Any:
    module: Any = (
        alter_configs
        if isinstance(request, alter_configs.AlterConfigsRequest)
        else incremental_alter_configs
    )
    response = (
        alter_configs.AlterConfigsResponse()
        if module is alter_configs
        else incremental_alter_configs.IncrementalAlterConfigsResponse()
    )
    for resource in request.resources:
        response.responses.append(
            module.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return response


def _alter_client_quotas(
    request: alter_client_quotas.AlterClientQuotasRequest, code: int, message: str
) -> Any:
    return alter_client_quotas.AlterClientQuotasResponse(
        entries=[
            alter_client_quotas.AlterClientQuotasResponseEntryData(
                error_code=code,
                error_message=message,
                entity=[
                    alter_client_quotas.AlterClientQuotasResponseEntityData(
                        entity_type=part.entity_type, entity_name=part.entity_name
                    )
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


def _elect_leaders(request: elect_leaders.ElectLeadersRequest, code: int, message: str) -> Any:
    return elect_leaders.ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            elect_leaders.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    elect_leaders.PartitionResult(
                        partition_id=number, error_code=code, error_message=message
                    )
                    for number in topic.partitions
                ],
            )
            for topic in request.topic_partitions or []
        ],
    )


def _reassignments(
    request: alter_partition_reassignments.AlterPartitionReassignmentsRequest,
    code: int,
    message: str,
) -> Any:
    return alter_partition_reassignments.AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        responses=[
            alter_partition_reassignments.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    alter_partition_reassignments.ReassignablePartitionResponse(
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
    request: alter_user_scram_credentials.AlterUserScramCredentialsRequest, code: int, message: str
) -> Any:
    names = [part.name for part in request.deletions] + [part.name for part in request.upsertions]
    return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
        results=[
            alter_user_scram_credentials.AlterUserScramCredentialsResult(
                user=name, error_code=code, error_message=message
            )
            for name in dict.fromkeys(names)
        ]
    )


def _create_acls(request: create_acls.CreateAclsRequest, code: int, message: str) -> Any:
    return create_acls.CreateAclsResponse(
        results=[
            create_acls.AclCreationResult(error_code=code, error_message=message)
            for _ in request.creations
        ]
    )


def _delete_acls(request: delete_acls.DeleteAclsRequest, code: int, message: str) -> Any:
    return delete_acls.DeleteAclsResponse(
        filter_results=[
            delete_acls.DeleteAclsFilterResult(error_code=code, error_message=message)
            for _ in request.filters
        ]
    )


def _with_message(response: type) -> Callable[[Any, int, str], Any]:
    return lambda _, code, message: response(error_code=code, error_message=message)


def _with_code(response: type) -> Callable[[Any, int, str], Any]:
    return lambda _, code, __: response(error_code=code)


_REFUSALS: Final[dict[type, Callable[[Any, int, str], Any]]] = {
    create_topics.CreateTopicsRequest: _create_topics,
    delete_topics.DeleteTopicsRequest: _delete_topics,
    create_acls.CreateAclsRequest: _create_acls,
    delete_acls.DeleteAclsRequest: _delete_acls,
    create_partitions.CreatePartitionsRequest: _create_partitions,
    alter_client_quotas.AlterClientQuotasRequest: _alter_client_quotas,
    alter_user_scram_credentials.AlterUserScramCredentialsRequest: _alter_user_scram_credentials,
    alter_configs.AlterConfigsRequest: _alter_configs,
    incremental_alter_configs.IncrementalAlterConfigsRequest: _alter_configs,
    allocate_producer_ids.AllocateProducerIdsRequest: _with_code(
        allocate_producer_ids.AllocateProducerIdsResponse
    ),
    alter_partition_reassignments.AlterPartitionReassignmentsRequest: _reassignments,
    list_partition_reassignments.ListPartitionReassignmentsRequest: _with_message(
        list_partition_reassignments.ListPartitionReassignmentsResponse
    ),
    elect_leaders.ElectLeadersRequest: _elect_leaders,
    alter_partition.AlterPartitionRequest: _with_code(alter_partition.AlterPartitionResponse),
    assign_replicas_to_dirs.AssignReplicasToDirsRequest: _with_code(
        assign_replicas_to_dirs.AssignReplicasToDirsResponse
    ),
    broker_registration.BrokerRegistrationRequest: _with_code(
        broker_registration.BrokerRegistrationResponse
    ),
    broker_heartbeat.BrokerHeartbeatRequest: _with_code(broker_heartbeat.BrokerHeartbeatResponse),
    controller_registration.ControllerRegistrationRequest: _with_message(
        controller_registration.ControllerRegistrationResponse
    ),
    unregister_broker.UnregisterBrokerRequest: _with_message(
        unregister_broker.UnregisterBrokerResponse
    ),
    update_features.UpdateFeaturesRequest: _with_message(update_features.UpdateFeaturesResponse),
    describe_quorum.DescribeQuorumRequest: _with_message(describe_quorum.DescribeQuorumResponse),
}
