"""A broker, somebody who may do everything, and somebody whose rights are given one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Protocol

from barnabas.base.ids import Uuid, uuid_to_text
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import decode_response_header, encode_request
from barnabas.protocol.messages.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.transactions import InitProducerIdRequest
from barnabas.protocol.schema import Message, Struct
from support.logs import make_batch
from support.node_process import wait_until
from support.raw_client import RawClient
from support.required_rights.needs import Right

GROUP, TRANSACTION, SHARE = range(3)
RECORD = "what-nobody-may-read"
METADATA = "what-was-committed"
OFFSET = 1
"""Committed and written up to."""


class Rights(Protocol):
    """The rights of the user, as they are set."""

    def grant_all(self) -> None:
        """Everything, with everything."""

    def grant_all_but(self, rights: Iterable[Right]) -> None:
        """Everything but these."""

    def grant_only(self, rights: Iterable[Right]) -> None:
        """These and nothing else."""


class World:
    """What a case works with; `renew` gives each its own topic, group and transactional id."""

    def __init__(self, admin: RawClient, user: RawClient, rights: Rights) -> None:
        self.admin = admin
        self.user = user
        self.rights = rights
        self._numbers = itertools.count(1)
        self.renew()
        for key_type in (GROUP, TRANSACTION):
            self.find_coordinator(key_type)
        self.make_topic()
        self.find_coordinator(SHARE)
        listed = ListGroupsRequest()
        wait_until(lambda: not self.call(listed).error_code, "the coordinator of groups")
        initialized = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=60_000
        )
        wait_until(lambda: not self.call(initialized).error_code, "that of transactions")

    def renew(self) -> None:
        number = next(self._numbers)
        self.topic = f"topic-{number:03}"
        self.group = f"group-{number:03}"
        self.transactional_id = f"transaction-{number:03}"
        self.topic_id = Uuid(bytes(16))

    # What there is, made with all rights

    def call(self, request: Message, version: int | None = None) -> Any:
        """The answer to somebody who may do everything."""
        return ask(self.admin, request, version)[0]

    def call_as_user(self, request: Message, version: int | None = None) -> Any:
        """The answer to the user, who may do everything while a case is prepared."""
        return ask(self.user, request, version)[0]

    def make_topic(self, partitions: int = 1) -> None:
        """The topic of the case, with one record in it."""
        made = CreatableTopic(name=self.topic, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=[made], timeout_ms=5000)
        (result,) = self.admin.call(request, CreateTopicsResponse).topics
        assert not result.error_code, result.error_message
        self.topic_id = result.topic_id
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)])
        wait_until(
            lambda: not self.admin.call(asked, MetadataResponse).topics[0].error_code,
            f"the creation of {self.topic}",
        )
        record = bytes(make_batch(RECORD))
        wait_until(
            lambda: not self.admin.produce(self.topic, record).error_code,
            f"a leader of {self.topic}",
        )

    def delete_topic(self, name: str = "") -> None:
        """Delete the topic of the case, or another, and wait until nobody knows it."""
        name = name or self.topic
        doomed = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000)
        assert not self.call(doomed).responses[0].error_code
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        wait_until(lambda: self.call(asked).topics[0].error_code, f"the end of {name}")

    def find_coordinator(self, key_type: int) -> None:
        """Wait until this broker coordinates."""
        keys = {
            GROUP: self.group,
            TRANSACTION: self.transactional_id,
            SHARE: f"{self.group}:{uuid_to_text(self.topic_id)}:0",
        }
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[keys[key_type]])
        wait_until(
            lambda: (
                not self.admin.call(request, FindCoordinatorResponse).coordinators[0].error_code
            ),
            f"a coordinator for {keys[key_type]}",
        )


def ask(client: RawClient, request: Message, version: int | None = None) -> tuple[Any, bytes]:
    """An answer, and its bytes after the correlation id."""
    (api,) = [api for api in APIS.values() if api.request is type(request)]
    if version is None:
        version = api.max_stable_version
    client.send(api.key, version, request)
    frame = client.receive_frame()
    header, position = decode_response_header(api, version, frame)
    assert header.correlation_id == client.correlation_id
    response, end = decode_at(api.response, version, frame, position)
    assert end == len(frame)
    return response, frame[4:]


def bytes_of(request: Message, version: int | None) -> bytes:
    """A request as it is sent."""
    (api,) = [api for api in APIS.values() if api.request is type(request)]
    if version is None:
        version = api.max_stable_version
    return bytes(encode_request(api.key, version, 0, "raw", request))


def errors_in(answer: Any) -> set[ErrorCode]:
    """The errors anywhere in an answer."""
    if isinstance(answer, list):
        return set().union(*map(errors_in, answer))
    if not isinstance(answer, Struct):
        return set()
    found: set[ErrorCode] = set()
    for part in answer.SCHEMA.fields:
        value = getattr(answer, part.name)
        if part.name.endswith("error_code"):
            found |= {ErrorCode.of(value)} if value else set()
        else:
            found |= errors_in(value)
    return found


def seen(world: World, asked: bytes, answered: bytes) -> list[bytes]:
    """Return what an answer reveals of the case's resources that was not in the request."""
    secrets = [
        *(text.encode() for text in (world.topic, world.group, world.transactional_id)),
        *(text.encode() for text in (RECORD, METADATA)),
    ]
    if any(world.topic_id):
        secrets.append(bytes(world.topic_id))
    return [secret for secret in secrets if secret in answered and secret not in asked]
