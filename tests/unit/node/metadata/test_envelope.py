"""Requests that brokers pass on, and their answers."""

import pytest

from barnabas.node.metadata.asker import Asker
from barnabas.node.metadata.envelope import seal, seal_response, unseal, unseal_response
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.connections import EnvelopeRequest
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.protocol.messages.voters import DescribeQuorumRequest, DescribeQuorumResponse, Node

REQUEST = CreateTopicsRequest(topics=[CreatableTopic(name="clicks", num_partitions=3)])


HOSTS = {"fe80::1%eth0": "fe80::1", "a-pipe": "0.0.0.0"}
"""Addresses of which only this is passed on."""


def test_a_client_without_an_id_goes_by_that_of_the_node() -> None:
    _, header, _, asker = unseal(seal(REQUEST, None, Asker("User:x", "::1"), "node-1"))
    assert header.client_id == asker.client_id == "node-1"


@pytest.mark.parametrize("address", ["10.0.0.7", "::1", "fe80::1%eth0", "a-pipe"])
def test_what_is_sealed_is_found_again(address: str) -> None:
    envelope = seal(REQUEST, None, Asker("User:alice:of:x", address, "app", True), "node-1")
    api, header, request, asker = unseal(envelope)
    assert (api.key.name, header.client_id) == ("CREATE_TOPICS", "app")
    assert request == REQUEST
    host = HOSTS.get(address, address)
    assert asker == Asker("User:alice:of:x", host, "app", True, header.request_api_version)
    response = CreateTopicsResponse(topics=[CreatableTopicResult(name="clicks", num_partitions=3)])
    assert unseal_response(REQUEST, None, seal_response(api, header, response)) == response


def test_an_address_travels_as_bytes() -> None:
    assert seal(REQUEST, None, Asker("User:x", "10.0.0.7"), "c").client_host_address == bytes(
        [10, 0, 0, 7]
    )


@pytest.mark.parametrize(
    ("data", "principal"),
    [
        (b"", b"\0\0\2a\2b\0\0"),
        (b"\0\x13\0\7", b"\0\0\2a\2b\0\0"),
        (b"\0\x13\0\x7f\0\0\0\0\0\0\0", b"\0\0\2a\2b\0\0"),
        (seal(REQUEST, None, Asker("User:x", ""), "c").request_data, None),
        (seal(REQUEST, None, Asker("User:x", ""), "c").request_data, b"\0\7\2a\2b\0\0"),
        (seal(REQUEST, None, Asker("User:x", ""), "c").request_data, b"\0\0\2a"),
    ],
)
def test_what_is_no_envelope_is_refused(data: bytes, principal: bytes | None) -> None:
    with pytest.raises(DecodeError):
        unseal(
            EnvelopeRequest(
                request_data=data, request_principal=principal, client_host_address=b"\0" * 4
            )
        )


@pytest.mark.parametrize("address", [b"", b"\1\2\3", b"\0" * 17])
def test_an_address_that_is_none_is_refused(address: bytes) -> None:
    envelope = seal(REQUEST, None, Asker("User:x"), "c")
    envelope.client_host_address = address
    with pytest.raises(DecodeError):
        unseal(envelope)


def test_a_request_keeps_the_version_that_the_client_chose() -> None:
    """Topics are named in another field since version 6: in that one these would be lost."""
    asked = DeleteTopicsRequest(topic_names=["orders"])
    api, header, request, _ = unseal(seal(asked, 4, Asker("User:x", "10.0.0.7"), "c"))
    assert (header.request_api_version, request) == (4, asked)
    answer = DeleteTopicsResponse(responses=[DeletableTopicResult(name="orders")])
    assert unseal_response(asked, 4, seal_response(api, header, answer)) == answer


def test_an_answer_that_the_version_cannot_carry_is_an_error_in_the_envelope() -> None:
    """The broker would ask again and again if the controller closed the connection."""
    asked = DescribeQuorumRequest()
    api, header, _, _ = unseal(seal(asked, 1, Asker("User:x", "10.0.0.7"), "c"))
    answer = unseal_response(
        asked, 1, seal_response(api, header, DescribeQuorumResponse(nodes=[Node(node_id=3)]))
    )
    assert (answer.error_code, answer.nodes) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
