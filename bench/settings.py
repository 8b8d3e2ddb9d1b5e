"""Where things are, and how much each workload does."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
RESULTS = ROOT / "bench" / "results"
KAFKA_VERSION = "4.3.1"
ROUNDS = 3
MEGABYTE = 1_000_000
GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """Volumes of a run. Records of the warm-up part of a workload are not in its result."""

    rounds: int = ROUNDS
    directory: Path = CACHE / "bench"
    partitions: int = 1
    produce_1000_records: int = 1_000_000
    produce_100_records: int = 5_000_000
    produce_single_records: int = 100_000
    warm_up_share: float = 0.2
    """This share of a produce workload's records is sent before its clock starts."""
    warm_up_records: int = 500_000
    """Sent, 1000 bytes each, to a server before the first workload."""
    tail_records: int = 1_000_000
    latency_rate: int = 1000
    latency_seconds: int = 30
    latency_warm_up_seconds: int = 5
    tenant_turns: int = 2
    """How often a client is measured alone and beside a noisy one; the median counts."""
    idle_seconds: float = 10.0
    connections: int = 1000
    many_partitions: int = 1000
    transaction_records: int = 400_000
    commit_seconds: float = 10.0
    group_members: int = 100
    group_joins: int = 7
    """Groups of the classic protocol that join, one after the other; the median counts."""
    share_records: int = 500_000
    compaction_records: int = 2_000_000
    compaction_keys: int = 200_000
    compaction_record_size: int = 500
    limit_bytes: int = 4_000_000_000
    cluster_records: int = 500_000
    catch_up_records: int = 1_000_000
    kills: int = 3
    """Of each kind, in a round; the median counts."""
    cluster_partitions: int = 2000
    cluster_partitions_more: int = 3000
    """Added before the controller is killed."""
    registry_schemas: int = 10_000
    registry_rest_seconds: float = 2.0
    registry_seconds: float = 5.0
    """How long each load of the registry lasts; its first fifth does not count."""
    query_records: int = 500_000
    """Appended at once while a query runs; a tenth of it comes before, as warm-up."""
    query_rate: int = 10_000
    query_seconds: float = 60.0
    """Of the load at that rate; its first half does not count."""
    query_pulls: int = 2_000
    connect_records: int = 500_000
    """Lines that the file connectors move."""
    connect_mirror_records: int = 300_000
    connect_rows: int = 50_000
    connect_lake_rows: int = 100_000
    connect_calls: int = 10_000
    connect_seconds: float = 10.0
    """Of changes at a steady rate, whose way to the topic is timed."""
    handshake_seconds: float = 5.0
    metrics_turns: int = 6
    """Of the node without metrics and the one with them, for each load; the median counts."""
    metrics_partitions: int = 10_000
    timeout_seconds: float = 600.0

    @classmethod
    def quick(cls, *, rounds: int, directory: Path, partitions: int) -> "Settings":
        """A smoke run: every workload, too short to mean anything."""
        return cls(
            rounds=rounds,
            directory=directory,
            partitions=partitions,
            produce_1000_records=100_000,
            produce_100_records=300_000,
            produce_single_records=10_000,
            warm_up_records=20_000,
            tail_records=100_000,
            latency_seconds=4,
            latency_warm_up_seconds=1,
            idle_seconds=1.0,
            transaction_records=40_000,
            commit_seconds=2.0,
            group_members=10,
            group_joins=1,
            share_records=50_000,
            compaction_records=200_000,
            compaction_keys=20_000,
            limit_bytes=400_000_000,
            cluster_records=50_000,
            catch_up_records=50_000,
            kills=1,
            cluster_partitions=200,
            cluster_partitions_more=300,
            registry_schemas=1_000,
            registry_seconds=1.0,
            registry_rest_seconds=0.5,
            query_records=50_000,
            query_seconds=10.0,
            query_pulls=200,
            connect_records=50_000,
            connect_mirror_records=30_000,
            connect_rows=5_000,
            connect_lake_rows=5_000,
            connect_calls=500,
            connect_seconds=2.0,
            handshake_seconds=1.0,
            metrics_turns=2,
            metrics_partitions=1_000,
            timeout_seconds=120.0,
        )
