"""The controller's answers can be said in every version that a client may ask in."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.broker.controller.versions import fit
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import nodes, topics, voters


@pytest.mark.parametrize("version", [0, 1, 2])
def test_nodes_of_the_quorum_are_named_from_version_2_on(version: int) -> None:
    node = voters.Node(node_id=3, listeners=[])
    response = fit(voters.DescribeQuorumResponse(nodes=[node]), version)
    assert len(_carried(response, version).nodes) == (version == 2)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("kind", ["current_voters", "observers"])
def test_directories_of_the_quorum_are_named_from_version_2_on(kind: str, version: int) -> None:
    directory = Uuid(b"d" * 16)
    replica = voters.ReplicaState(replica_id=1, replica_directory_id=directory)
    replicas: dict[str, Any] = {kind: [replica]}
    partition = voters.DescribeQuorumResponsePartitionData(**replicas)
    topic = voters.DescribeQuorumResponseTopicData(partitions=[partition])
    response = fit(voters.DescribeQuorumResponse(topics=[topic]), version)
    (carried,) = getattr(_carried(response, version).topics[0].partitions[0], kind)
    assert carried.replica_id == 1
    assert carried.replica_directory_id == (directory if version == 2 else ZERO_UUID)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_features_have_results_of_their_own_until_version_1(version: int) -> None:
    result = nodes.UpdatableFeatureResult(feature="group.version")
    response = fit(nodes.UpdateFeaturesResponse(results=[result]), version)
    assert len(_carried(response, version).results) == (version < 2)


@pytest.mark.parametrize("version", range(1, 7))
def test_deletion_that_is_disabled_has_a_name_from_version_3_on(version: int) -> None:
    code = ErrorCode.TOPIC_DELETION_DISABLED
    result = topics.DeletableTopicResult(name="t", error_code=code)
    response = fit(topics.DeleteTopicsResponse(responses=[result]), version)
    expected = code if version >= 3 else ErrorCode.INVALID_REQUEST
    assert _carried(response, version).responses[0].error_code == expected


def _carried(response: Any, version: int) -> Any:
    return decode(type(response), version, encode(response, version))
