"""Records of the metadata log (KIP-631 and its successors); `api_key` is the record's type."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    binary,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)
from barnabas.protocol.messages.quotas import EntityData
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0", flexible="0+", api_key=25)
class AbortTransactionRecord(Message):
    reason: str | None = string("0+", nullable="0+", default=None, tagged="0+", tag=0)


@message(versions="0", flexible="0+", api_key=18)
class AccessControlEntryRecord(Message):
    id: Uuid = uuid("0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("0+")
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@message(versions="0", flexible="0+", api_key=23)
class BeginTransactionRecord(Message):
    name: str | None = string("0+", nullable="0+", default=None, tagged="0+", tag=0)


@message(versions="0-3", flexible="0+", api_key=17)
class BrokerRegistrationChangeRecord(Message):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+")
    fenced: int = int8("0+", tagged="0+", tag=0)
    in_controlled_shutdown: int = int8("1+", tagged="1+", tag=1)
    log_dirs: list[Uuid] = array_of(uuid, "2+", tagged="2+", tag=2)
    cordoned_log_dirs: list[Uuid] | None = array_of(
        uuid, "3+", nullable="3+", default=None, tagged="3+", tag=3
    )


@message(versions="0", flexible="0+", api_key=28)
class ClearElrRecord(Message):
    topic_name: str = string("0+")


@message(versions="0", flexible="0+", api_key=14)
class ClientQuotaRecord(Message):
    entity: list[EntityData] = array_of(EntityData, "0+")
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


@message(versions="0", flexible="0+", api_key=4)
class ConfigRecord(Message):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")


@message(versions="0", flexible="0+", api_key=10)
class DelegationTokenRecord(Message):
    owner: str = string("0+")
    requester: str = string("0+")
    renewers: list[str] = array_of(string, "0+")
    issue_timestamp: int = int64("0+")
    max_timestamp: int = int64("0+")
    expiration_timestamp: int = int64("0+")
    token_id: str = string("0+")


@message(versions="0", flexible="0+", api_key=24)
class EndTransactionRecord(Message):
    """Ends the open transaction of metadata records (KIP-868)."""


@message(versions="0", flexible="0+", api_key=12)
class FeatureLevelRecord(Message):
    name: str = string("0+")
    feature_level: int = int16("0+")


@message(versions="0", flexible="0+", api_key=7)
class FenceBrokerRecord(Message):
    id: int = int32("0+")
    epoch: int = int64("0+")


@message(versions="0", flexible="0+", api_key=20)
class NoOpRecord(Message):
    """Moves the end of the log when nothing else does (KIP-835)."""


@message(versions="0-2", flexible="0+", api_key=5)
class PartitionChangeRecord(Message):
    partition_id: int = int32("0+", default=-1)
    topic_id: Uuid = uuid("0+")
    isr: list[int] | None = array_of(int32, "0+", nullable="0+", default=None, tagged="0+", tag=0)
    leader: int = int32("0+", default=-2, tagged="0+", tag=1)
    replicas: list[int] | None = array_of(
        int32, "0+", nullable="0+", default=None, tagged="0+", tag=2
    )
    removing_replicas: list[int] | None = array_of(
        int32, "0+", nullable="0+", default=None, tagged="0+", tag=3
    )
    adding_replicas: list[int] | None = array_of(
        int32, "0+", nullable="0+", default=None, tagged="0+", tag=4
    )
    leader_recovery_state: int = int8("0+", default=-1, tagged="0+", tag=5)
    directories: list[Uuid] | None = array_of(
        uuid, "1+", nullable="1+", default=None, tagged="1+", tag=8
    )
    eligible_leader_replicas: list[int] | None = array_of(
        int32, "2+", nullable="2+", default=None, tagged="2+", tag=6
    )
    last_known_elr: list[int] | None = array_of(
        int32, "2+", nullable="2+", default=None, tagged="2+", tag=7
    )


@message(versions="0-2", flexible="0+", api_key=3)
class PartitionRecord(Message):
    partition_id: int = int32("0+", default=-1)
    topic_id: Uuid = uuid("0+")
    replicas: list[int] = array_of(int32, "0+")
    isr: list[int] = array_of(int32, "0+")
    removing_replicas: list[int] = array_of(int32, "0+")
    adding_replicas: list[int] = array_of(int32, "0+")
    leader: int = int32("0+", default=-1)
    leader_recovery_state: int = int8("0+", tagged="0+", tag=0)
    leader_epoch: int = int32("0+", default=-1)
    partition_epoch: int = int32("0+", default=-1)
    directories: list[Uuid] = array_of(uuid, "1+")
    eligible_leader_replicas: list[int] | None = array_of(
        int32, "2+", nullable="2+", default=None, tagged="2+", tag=1
    )
    last_known_elr: list[int] | None = array_of(
        int32, "2+", nullable="2+", default=None, tagged="2+", tag=2
    )


@message(versions="0", flexible="0+", api_key=15)
class ProducerIdsRecord(Message):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    next_producer_id: int = int64("0+")


@struct
class BrokerEndpoint(Struct):
    name: str = string("0+", map_key=True)
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


@struct
class BrokerFeature(Struct):
    name: str = string("0+", map_key=True)
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message(versions="0-4", flexible="0+", api_key=0)
class RegisterBrokerRecord(Message):
    broker_id: int = int32("0+")
    is_migrating_zk_broker: bool = boolean("2+")
    incarnation_id: Uuid = uuid("0+")
    broker_epoch: int = int64("0+")
    end_points: list[BrokerEndpoint] = array_of(BrokerEndpoint, "0+")
    features: list[BrokerFeature] = array_of(BrokerFeature, "0+")
    rack: str | None = string("0+", nullable="0+")
    fenced: bool = boolean("0+", default=True)
    in_controlled_shutdown: bool = boolean("1+")
    log_dirs: list[Uuid] = array_of(uuid, "3+", tagged="3+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = array_of(
        uuid, "4+", nullable="4+", default=None, tagged="4+", tag=1
    )


@struct
class ControllerEndpoint(Struct):
    name: str = string("0+", map_key=True)
    host: str = string("0+")
    port: int = uint16("0+")
    security_protocol: int = int16("0+")


@struct
class ControllerFeature(Struct):
    name: str = string("0+", map_key=True)
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message(versions="0", flexible="0+", api_key=27)
class RegisterControllerRecord(Message):
    controller_id: int = int32("0+")
    incarnation_id: Uuid = uuid("0+")
    zk_migration_ready: bool = boolean("0+")
    end_points: list[ControllerEndpoint] = array_of(ControllerEndpoint, "0+")
    features: list[ControllerFeature] = array_of(ControllerFeature, "0+")


@message(versions="0", flexible="0+", api_key=19)
class RemoveAccessControlEntryRecord(Message):
    id: Uuid = uuid("0+")


@message(versions="0", flexible="0+", api_key=26)
class RemoveDelegationTokenRecord(Message):
    token_id: str = string("0+")


@message(versions="0", flexible="0+", api_key=9)
class RemoveTopicRecord(Message):
    topic_id: Uuid = uuid("0+")


@message(versions="0", flexible="0+", api_key=22)
class RemoveUserScramCredentialRecord(Message):
    name: str = string("0+")
    mechanism: int = int8("0+")


@message(versions="0", flexible="0+", api_key=2)
class TopicRecord(Message):
    name: str = string("0+")
    topic_id: Uuid = uuid("0+")


@message(versions="0", flexible="0+", api_key=8)
class UnfenceBrokerRecord(Message):
    id: int = int32("0+")
    epoch: int = int64("0+")


@message(versions="0", flexible="0+", api_key=1)
class UnregisterBrokerRecord(Message):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+")


@message(versions="0", flexible="0+", api_key=11)
class UserScramCredentialRecord(Message):
    name: str = string("0+")
    mechanism: int = int8("0+")
    salt: bytes = binary("0+")
    stored_key: bytes = binary("0+")
    server_key: bytes = binary("0+")
    iterations: int = int32("0+")


@message(versions="0", flexible="0+", api_key=21)
class ZkMigrationStateRecord(Message):
    zk_migration_state: int = int8("0+")


METADATA_RECORDS: dict[int, type[Message]] = {
    0: RegisterBrokerRecord,
    1: UnregisterBrokerRecord,
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    7: FenceBrokerRecord,
    8: UnfenceBrokerRecord,
    9: RemoveTopicRecord,
    10: DelegationTokenRecord,
    11: UserScramCredentialRecord,
    12: FeatureLevelRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    17: BrokerRegistrationChangeRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    20: NoOpRecord,
    21: ZkMigrationStateRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    26: RemoveDelegationTokenRecord,
    27: RegisterControllerRecord,
    28: ClearElrRecord,
}
"""Record type to its message."""
