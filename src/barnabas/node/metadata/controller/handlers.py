"""Table of the controller's requests and the functions that decide them."""

from collections.abc import Callable
from typing import Any, Final

from barnabas.node.metadata.controller.acls import create_acls, delete_acls
from barnabas.node.metadata.controller.alter_partition import alter_partition
from barnabas.node.metadata.controller.assign_directories import assign_replicas_to_dirs
from barnabas.node.metadata.controller.brokers import (
    broker_heartbeat,
    check_broker_epoch,
    register_broker,
    unregister_broker,
)
from barnabas.node.metadata.controller.client_quotas import alter_client_quotas
from barnabas.node.metadata.controller.config_changes import (
    alter_configs,
)
from barnabas.node.metadata.controller.decision import ControllerState, Decision
from barnabas.node.metadata.controller.delegation_tokens import (
    create_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from barnabas.node.metadata.controller.elections import elect_leaders
from barnabas.node.metadata.controller.features import update_features
from barnabas.node.metadata.controller.reassignment import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from barnabas.node.metadata.controller.scram_credentials import alter_user_scram_credentials
from barnabas.node.metadata.controller.topics import create_partitions, create_topics, delete_topics
from barnabas.node.metadata.image import ControllerImage
from barnabas.node.metadata.merging import read_listeners, read_ranges
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.snapshot import register_controller_record
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest
from barnabas.protocol.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from barnabas.protocol.messages.credentials import (
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from barnabas.protocol.messages.metadata_records import ProducerIdsRecord
from barnabas.protocol.messages.nodes import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from barnabas.protocol.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from barnabas.protocol.messages.quotas import AlterClientQuotasRequest
from barnabas.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from barnabas.protocol.messages.transactions import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


def register_controller(
    state: ControllerState, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    """Register a controller, or a new incarnation of one."""
    if not state.image.metadata_version.has_controller_registration:
        return Decision(
            ControllerRegistrationResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                error_message="The current metadata.version is too old to support controller "
                "registrations.",
            )
        )
    controller = ControllerImage(
        id=request.controller_id,
        incarnation_id=request.incarnation_id,
        listeners=read_listeners(request.listeners),
        features=read_ranges(request.features),
    )
    return Decision(
        ControllerRegistrationResponse(error_message=None), [register_controller_record(controller)]
    )


BLOCK_SIZE = 1000
PRODUCER_ID_MAX = 2**63 - 1


def allocate_producer_ids(
    state: ControllerState, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    """Give the broker the next block."""
    failure = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    if failure is not None:
        return Decision(AllocateProducerIdsResponse(error_code=failure.code))
    first = state.image.next_producer_id
    if first > PRODUCER_ID_MAX - BLOCK_SIZE:
        return Decision(AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    return Decision(
        AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE),
        [MetadataRecord(record)],
    )


DECIDE: Final[dict[type, Callable[[ControllerState, Any], Decision[Any]]]] = {
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    CreatePartitionsRequest: create_partitions,
    AlterConfigsRequest: alter_configs,
    IncrementalAlterConfigsRequest: alter_configs,
    AlterClientQuotasRequest: alter_client_quotas,
    AlterUserScramCredentialsRequest: alter_user_scram_credentials,
    CreateAclsRequest: create_acls,
    DeleteAclsRequest: delete_acls,
    AllocateProducerIdsRequest: allocate_producer_ids,
    AlterPartitionRequest: alter_partition,
    AlterPartitionReassignmentsRequest: alter_partition_reassignments,
    ListPartitionReassignmentsRequest: list_partition_reassignments,
    ElectLeadersRequest: elect_leaders,
    AssignReplicasToDirsRequest: assign_replicas_to_dirs,
    BrokerRegistrationRequest: register_broker,
    BrokerHeartbeatRequest: broker_heartbeat,
    UnregisterBrokerRequest: unregister_broker,
    ControllerRegistrationRequest: register_controller,
    UpdateFeaturesRequest: update_features,
    CreateDelegationTokenRequest: create_delegation_token,
    RenewDelegationTokenRequest: renew_delegation_token,
    ExpireDelegationTokenRequest: expire_delegation_token,
}
