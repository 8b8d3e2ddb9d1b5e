"""A controller without log or quorum: decide, replay, answer."""

import random
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.bootstrap import feature_records
from barnabas.node.metadata.controller.activation import activation_records
from barnabas.node.metadata.controller.decision import (
    NO_MUTATION_QUOTA,
    ControllerState,
    MutationQuota,
)
from barnabas.node.metadata.controller.handlers import DECIDE
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.loader import ImageLoader, RecordBatch
from barnabas.node.metadata.records import MetadataRecord, decode_record, encode_record
from barnabas.node.metadata.registration import broker_registration
from barnabas.protocol.features import (
    FEATURES,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    MetadataVersion,
)
from barnabas.protocol.messages.nodes import BrokerHeartbeatRequest
from barnabas.protocol.well_known import ANONYMOUS

CLUSTER_ID = "wNy8cT3ESyCmV0WqO_SnvA"
NODE_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "0",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "0@localhost:9093",
    "log.dirs": "/data/barnabas",
}


def directory(broker_id: int, number: int = 0) -> Uuid:
    return Uuid(bytes([9] * 14 + [broker_id, number]))


def incarnation(number: int) -> Uuid:
    return Uuid(bytes([7] * 15 + [number]))


class Harness:
    """`do(request)` runs the handler and replays its records, through their encoded form."""

    def __init__(
        self, level: MetadataVersion = LATEST_METADATA_VERSION, seed: int = 1, **config: str
    ) -> None:
        properties = NODE_PROPERTIES | {key.replace("_", "."): v for key, v in config.items()}
        self.effective = EffectiveConfig(NodeConfig.from_properties(properties))
        self.random = random.Random(seed)
        self.loader = ImageLoader(MetadataImage(cluster_id=CLUSTER_ID))
        self.next_offset = 0
        self.kraft_version = 0
        self.mutations: MutationQuota = NO_MUTATION_QUOTA
        self.requester = ANONYMOUS
        self.now_ms = 1000
        self.kraft_version_refusal: str | None = None
        self.records: list[MetadataRecord] = []
        levels = {name: feature.default_level(level) for name, feature in FEATURES.items()}
        levels[METADATA_VERSION] = level
        self.append(activation_records(self.state(), feature_records(levels), -1))

    @property
    def image(self) -> MetadataImage:
        return self.loader.image

    def state(self) -> ControllerState:
        return ControllerState(
            image=self.image,
            effective=self.effective,
            node_id=0,
            random=self.random,
            next_offset=self.next_offset,
            mutations=self.mutations,
            kraft_version=self.kraft_version,
            requester=self.requester,
            now_ms=self.now_ms,
            kraft_version_refusal=lambda level: self.kraft_version_refusal,
        )

    def append(self, records: list[MetadataRecord]) -> None:
        self.records = [decode_record(encode_record(record)) for record in records]
        self.loader.feed([RecordBatch(self.next_offset, 1, 1000, self.records)])
        self.next_offset += len(records)

    def do(self, request: Any) -> Any:
        """Decide, replay, and return the response; `records` are those of the decision."""
        decision = DECIDE[type(request)](self.state(), request)
        if decision.kraft_version is not None:
            self.kraft_version = decision.kraft_version
        self.append(decision.records)
        return decision.response

    def register(
        self,
        broker_id: int,
        *,
        rack: str | None = None,
        directories: int = 1,
        incarnation_number: int = 0,
        previous_epoch: int = -1,
    ) -> int:
        """Register a broker, fenced; returns its epoch."""
        response = self.do(
            broker_registration(
                broker_id=broker_id,
                cluster_id=CLUSTER_ID,
                incarnation_id=incarnation(incarnation_number),
                listeners={},
                rack=rack,
                log_dirs=[directory(broker_id, number) for number in range(directories)],
                previous_broker_epoch=previous_epoch,
            )
        )
        assert response.error_code == 0, response
        epoch: int = response.broker_epoch
        return epoch

    def heartbeat(self, broker_id: int, **fields: Any) -> Any:
        return self.do(
            BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=self.image.brokers[broker_id].epoch,
                current_metadata_offset=self.image.offset,
                **fields,
            )
        )

    def add_brokers(self, count: int, racks: list[str | None] | None = None) -> None:
        """Register and unfence brokers 0 to count - 1."""
        for broker_id in range(count):
            self.register(broker_id, rack=racks[broker_id] if racks else None)
            assert not self.heartbeat(broker_id).is_fenced
