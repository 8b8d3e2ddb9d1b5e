"""Configuration of one partition's log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.protocol.records.batch import Codec, TimestampType

LONG_MAX = 2**63 - 1
TOPIC_NAME_STRATEGY = "io.confluent.kafka.serializers.subject.TopicNameStrategy"

_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class SchemaValidation(NamedTuple):
    """The strategies that name the subjects of keys and values; None: no schema is required."""

    key_strategy: str | None
    value_strategy: str | None


@dataclass(frozen=True, slots=True)
class LogConfig:
    """A topic's log configuration, with Kafka's defaults. Times are ms, sizes bytes.

    -1 means without limit for `retention_bytes` and `retention_ms`. Source: Kafka's LogConfig
    and TopicConfig.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    max_message_bytes: int = 1_048_588
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 3_600_000
    delete_retention_ms: int = 86_400_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    file_delete_delay_ms: int = 60_000
    preallocate: bool = False
    confluent_key_schema_validation: bool = False
    confluent_value_schema_validation: bool = False
    confluent_key_subject_name_strategy: str = TOPIC_NAME_STRATEGY
    confluent_value_subject_name_strategy: str = TOPIC_NAME_STRATEGY

    is_compacted: bool = field(init=False)
    is_deleted: bool = field(init=False)
    timestamp_type: TimestampType = field(init=False)
    codec: Codec | None = field(init=False)
    """The codec to which batches are recompressed; None: the producer's is kept."""
    codec_level: int | None = field(init=False)
    schema_validation: SchemaValidation | None = field(init=False)
    """The schemas that clients' records must have; None: no check."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "is_compacted", "compact" in self.cleanup_policy)
        put(self, "is_deleted", "delete" in self.cleanup_policy)
        by_broker = self.message_timestamp_type == "LogAppendTime"
        put(
            self,
            "timestamp_type",
            TimestampType.LOG_APPEND_TIME if by_broker else TimestampType.CREATE_TIME,
        )
        codec = _CODECS.get(self.compression_type)
        put(self, "codec", codec)
        levels = {
            Codec.GZIP: None if self.compression_gzip_level == -1 else self.compression_gzip_level,
            Codec.LZ4: self.compression_lz4_level,
            Codec.ZSTD: self.compression_zstd_level,
        }
        put(self, "codec_level", None if codec is None else levels.get(codec))
        key, value = self.confluent_key_schema_validation, self.confluent_value_schema_validation
        validation = SchemaValidation(
            self.confluent_key_subject_name_strategy if key else None,
            self.confluent_value_subject_name_strategy if value else None,
        )
        put(self, "schema_validation", validation if key or value else None)

    @classmethod
    def from_topic_values(cls, values: Mapping[str, Any]) -> "LogConfig":
        """From typed values under Kafka's topic keys (`segment.bytes` …); others are ignored."""
        known = {
            name: values[key] for key, name in _FIELD_OF_KEY.items() if values.get(key) is not None
        }
        policy = known.get("cleanup_policy")
        if policy is not None:
            known["cleanup_policy"] = _words(policy)
        return cls(**known)

    @property
    def index_entries_max(self) -> int:
        """Entries of an offset index at most (`segment.index.bytes`, 8 bytes each)."""
        return self.segment_index_bytes // 8


_FIELD_OF_KEY = {
    name.replace("_", "."): name
    for name, definition in LogConfig.__dataclass_fields__.items()
    if definition.init
}


def _words(policy: str | Iterable[str]) -> frozenset[str]:
    words = policy.split(",") if isinstance(policy, str) else policy
    return frozenset(word.strip() for word in words if word.strip())
