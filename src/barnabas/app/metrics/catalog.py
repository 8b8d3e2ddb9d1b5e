"""Every family of figures that a node exports, with its labels and what it means.

Families with a name in Kafka have the one under which the JMX exporter's example configurations
show them (kafka-2_0_0.yml and kafka-kraft-3_0_0.yml, `lowercaseOutputName: true`). Those of offsets
and lag have the names of the common exporter for them. Families of our own begin with `barnabas_`.
`docs/metrics.md` is made of this table.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from barnabas.web.metrics import Family

PARTITION: Final = ("partition", "topic")
GROUP_PARTITION: Final = ("consumergroup", "partition", "topic")


def _families(
    kind: Literal["counter", "gauge", "summary"],
    prefix: str,
    labels: tuple[str, ...],
    rows: Mapping[str, str],
) -> Iterable[Family]:
    return [Family(prefix + name, kind, labels, what) for name, what in rows.items()]


TOPIC_TRAFFIC: Final = _families("counter", "kafka_server_brokertopicmetrics_", ("topic",),
    {
        "messagesin_total": "Records appended by this node as leader; without a topic: of all.",
        "bytesin_total": "Bytes appended by this node as leader, as they were sent.",
        "bytesout_total": "Bytes sent to consumers and members of share groups.",
        "bytesrejected_total": "Bytes of batches that were larger than allowed.",
        "totalproducerequests_total": "Partitions of produce requests.",
        "totalfetchrequests_total": "Partitions looked at for fetch requests.",
        "failedproducerequests_total": "Partitions of produce requests that failed unexpectedly.",
        "failedfetchrequests_total": "Partitions of fetch requests that failed unexpectedly.",
        "totalsharefetchrequests_total": "Share fetches that asked for records of the topic.",
        "failedsharefetchrequests_total": "Share fetches that failed for one of its partitions.",
        "totalshareacknowledgementrequests_total": "Requests of share groups' members with "
                                                   "acknowledgements of records of the topic.",
        "failedshareacknowledgementrequests_total": "Requests whose acknowledgements failed for "
                                                    "one of the topic's partitions.",
        "invalidmessagecrcrecords_total": "Batches whose checksum was wrong.",
        "invalidoffsetorsequencerecords_total": "Batches with a gap in their producer's sequence.",
    },
)  # fmt: skip
REPLICATION_TRAFFIC: Final = _families("counter", "kafka_server_brokertopicmetrics_", (),
    {"replicationbytesin_total": "Bytes that this node fetched as a follower.",
     "replicationbytesout_total": "Bytes sent to followers."},
)  # fmt: skip
REQUESTS: Final = (
    Family("kafka_network_requestmetrics_requests_total", "counter", ("request",),
           "Requests that were handled, by API."),
    Family("kafka_network_requestmetrics_errors_total", "counter", ("error", "request"),
           "Errors answered, by API: of whole requests, or of partitions of Produce and Fetch."),
    *_families("summary", "kafka_network_requestmetrics_", ("quantile", "request"),
        {"totaltimems": "Milliseconds from a request's arrival until its answer is sent.",
         "requestqueuetimems": "Milliseconds until the request is begun.",
         "localtimems": "Milliseconds in the node's own handler.",
         "remotetimems": "Milliseconds it waits: for replicas, records or group members.",
         "responsequeuetimems": "Milliseconds the answer waits for its turn on its connection.",
         "responsesendtimems": "Milliseconds it takes to hand the answer to the socket."},
    ),
)  # fmt: skip
CONTROLLER: Final = (
    *_families("gauge", "kafka_controller_kafkacontroller_", (),
        {"activecontrollercount": "1 on the active controller, 0 on the others.",
         "activebrokercount": "Brokers that take part in the cluster.",
         "fencedbrokercount": "Registered brokers that are fenced: down, or not started yet.",
         "globaltopiccount": "Topics of the cluster.",
         "globalpartitioncount": "Partitions of the cluster.",
         "offlinepartitionscount": "Partitions without a leader.",
         "preferredreplicaimbalancecount": "Partitions not led by their preferred replica.",
         "lastappliedrecordoffset": "The last metadata record that this node has applied.",
         "lastappliedrecordtimestamp": "When that was written, in ms since 1970.",
         "lastappliedrecordlagms": "Milliseconds since then; 0 on the active controller."},
    ),
    Family("kafka_controller_controllerstats_leaderelectionrateandtimems", "summary", (),
           "Its `_count`: how often a partition got another leader. Times are not kept."),
    *_families("counter", "kafka_controller_controllerstats_", (),
        {"uncleanleaderelections_total": "Elections whose leader was not in sync: records may "
                                         "be lost."},
    ),
)  # fmt: skip
REPLICAS: Final = (
    *_families("gauge", "kafka_server_replicamanager_", (),
        {
            "partitioncount": "Partitions that have a replica here.",
            "leadercount": "Partitions that this node leads.",
            "offlinereplicacount": "Replicas here whose log directory has failed.",
            "underreplicatedpartitions": "Led here, with a replica that is not in sync.",
            "underminisrpartitioncount": "Led here, with fewer in sync than min.insync.replicas: "
                                         "acks=all is refused.",
            "atminisrpartitioncount": "Led here, with just min.insync.replicas in sync.",
            "reassigningpartitions": "Led here, gaining or losing replicas.",
            "partitionswithlatetransactionscount": "Replicas here with a transaction that is open "
                                                   "for longer than transaction.max.timeout.ms "
                                                   "and five minutes.",
            "produceridcount": "Idempotent producers that the logs here know.",
        },
    ),
    *_families("counter", "kafka_server_replicamanager_", (),
        {"isrshrinks_total": "Times that replicas left the in-sync replicas of a partition.",
         "isrexpands_total": "Times that a replica joined them.",
         "failedisrupdates_total": "Such changes that the controller refused."},
    ),
)  # fmt: skip
PARTITIONS: Final = (
    *_families("gauge", "kafka_log_log_", PARTITION,
               {"size": "Bytes of the replica's segments.",
                "numlogsegments": "Segments of the replica.",
                "logstartoffset": "First offset of the replica.",
                "logendoffset": "Offset after its last record."}),
    *_families("gauge", "kafka_cluster_partition_", PARTITION,
               {"underreplicated": "1 if a replica is not in sync. On the leader, as all of these.",
                "insyncreplicascount": "Replicas in sync.",
                "replicascount": "Replicas.",
                "laststableoffsetlag": "Records that read_committed may not read yet.",
                "underminisr": "1 if fewer replicas are in sync than min.insync.replicas.",
                "atminisr": "1 if just as many are."}),
    *_families("gauge", "kafka_topic_partition_", PARTITION,
               {"current_offset": "The high watermark. On the leader, as all of these.",
                "oldest_offset": "First offset.",
                "leader": "Node id of the leader.",
                "leader_is_preferred": "1 if the preferred replica leads.",
                "replicas": "Replicas.",
                "in_sync_replica": "Replicas in sync.",
                "under_replicated_partition": "1 if a replica is not in sync."}),
    Family("kafka_topic_partitions", "gauge", ("topic",),
           "Partitions of the topic; on the active controller."),
    Family("barnabas_partition_open_transaction_seconds", "gauge", PARTITION,
           "Seconds since the producer of the oldest open transaction wrote last; on the leader."),
)  # fmt: skip
FETCHERS: Final = (
    Family("kafka_server_replicafetchermanager_maxlag", "gauge", ("clientId",),
           "Most records that a follower here lacks of what its leader has committed."),
    Family("kafka_server_replicafetchermanager_failedpartitionscount", "gauge", ("clientId",),
           "Followed partitions whose last fetch failed."),
    Family("kafka_server_fetcherlagmetrics_consumerlag", "gauge", ("clientId", *PARTITION),
           "Records that a follower here lacks of what its leader has committed."),
)  # fmt: skip
PURGATORY: Final = _families(
    "gauge",
    "kafka_server_delayedoperationpurgatory_",
    ("delayedOperation",),
    {
        "purgatorysize": "Waits of requests for partitions: a request may wait for several.",
        "numdelayedoperations": "Requests that wait.",
    },
)
QUORUM: Final = (
    *_families("gauge", "kafka_server_raft_metrics_", (),
        {"current_leader": "Node id of the quorum's leader, -1 if this node knows none.",
         "current_epoch": "The quorum's epoch.",
         "high_watermark": "Offset up to which metadata is committed.",
         "log_end_offset": "Offset after the last metadata record of this node.",
         "number_of_voters": "Voters of the quorum.",
         "number_of_observers": "Other nodes that follow the metadata; on the leader."},
    ),
    Family("kafka_server_raft_metrics_current_state_info", "gauge", ("state",),
           "1 for the state that this node has in the quorum."),
    Family("barnabas_quorum_replica_lag", "gauge", ("replica", "role"),
           "Metadata records that a voter or observer lacks; on the leader."),
    Family("barnabas_quorum_replica_fetch_age_seconds", "gauge", ("replica", "role"),
           "Seconds since it last fetched metadata; on the leader."),
    Family("kafka_server_broker_metadata_metrics_last_applied_record_offset", "gauge", (),
           "The last metadata record that this node has applied."),
)  # fmt: skip
LOGS: Final = (
    *_families("gauge", "kafka_log_logmanager_", (),
        {"offlinelogdirectorycount": "Log directories that have failed."},
    ),
    Family("kafka_log_logmanager_logdirectoryoffline", "gauge", ("logDirectory",),
           "1 if the log directory has failed."),
    *_families("gauge", "barnabas_log_directory_", ("directory",),
        {"size_bytes": "Bytes of the segments in the log directory.",
         "free_bytes": "Bytes that its volume has free for the node.",
         "total_bytes": "Bytes of its volume."},
    ),
    *_families("gauge", "kafka_log_logcleaner_", (),
        {"max_clean_time_secs": "Seconds that the last round of compaction took.",
         "max_buffer_utilization_percent": "Percent of its map of keys that was in use.",
         "max_compaction_delay_secs": "Seconds by which a log's compaction is overdue.",
         "deadthreadcount": "Always 0: compaction begins again after a failure."},
    ),
    *_families("gauge", "kafka_log_logcleanermanager_", (),
        {"max_dirty_percent": "The greatest share of a log that is not compacted.",
         "time_since_last_run_ms": "Milliseconds since logs were last looked at.",
         "uncleanable_partitions_count": "Logs that cannot be compacted."},
    ),
    *_families("counter", "barnabas_compaction_", (),
        {"rounds_total": "Rounds of compaction.",
         "failures_total": "Rounds that failed.",
         "read_bytes_total": "Bytes read to rewrite segments.",
         "written_bytes_total": "Bytes written for them."},
    ),
)  # fmt: skip
SOCKETS: Final = _families(
    "gauge",
    "kafka_server_socketservermetrics_",
    ("listener",),
    {
        "connection_count": "Connections of the listener.",
        "connection_accept_rate": "Connections that it accepts a second.",
    },
)
BROKER: Final = (
    Family("kafka_server_kafkaserver_brokerstate", "gauge", (),
           "1 starting, 3 running (and not fenced)."),
    Family("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "gauge", (),
           "Share of the last second in which the event loop had nothing to do, from 0 to 1."),
    Family("kafka_network_socketserver_networkprocessoravgidle_percent", "gauge", (),
           "The same: one event loop does both."),
    Family("kafka_server_fetchsessioncache_numincrementalfetchsessions", "gauge", (),
           "Fetch sessions of consumers and followers."),
)  # fmt: skip
LOOP: Final = (
    Family(
        "barnabas_event_loop_lag_seconds",
        "summary",
        ("quantile",),
        "How late timers of the event loop run: of 50 a second, in the last 30 to 60 seconds.",
    ),
    Family(
        "barnabas_event_loop_longest_step_seconds",
        "gauge",
        (),
        "The longest time in which the event loop did one thing, in the last 30 to 60 seconds.",
    ),
)
TOOL: Final = (
    Family("barnabas_client_telemetry_instances", "gauge", (),
           "Clients that asked for a subscription or pushed metrics lately (KIP-714)."),
    Family("barnabas_client_telemetry_dropped_series_total", "counter", (),
           "Series that clients pushed beyond the limits."),
    Family("barnabas_metrics_collection_seconds", "gauge", (),
           "Time from the start to the end of collecting the figures of this scrape."),
    Family("barnabas_build_info", "gauge", ("version",), "1, with the version of Barnabas."),
)  # fmt: skip

CONSUMER_GROUPS: Final = (
    *_families("gauge", "kafka_consumergroup_", GROUP_PARTITION,
        {"current_offset": "Offset that the group has committed. On the group's coordinator, as "
                           "all that follow.",
         "lag": "Records from there to the end of the partition.",
         "lag_seconds": "Seconds since the first of them was written; 0 without any."},
    ),
    Family("kafka_consumergroup_lag_sum", "gauge", ("consumergroup", "topic"),
           "Lag of all partitions of the topic."),
    Family("kafka_consumergroup_members", "gauge", ("consumergroup",), "Members of the group."),
    Family("barnabas_group_epoch", "gauge", ("consumergroup",),
           "The group's generation or epoch: it rises with each rebalance."),
    Family("barnabas_group_partitions_not_shown", "gauge", (),
           "Partitions of groups whose lag is not shown: a node shows 50,000."),
    Family("barnabas_groups", "gauge", ("protocol", "state"),
           "Groups by kind (classic, consumer, share, streams) and state."),
    Family("kafka_server_group_coordinator_metrics_group_count", "gauge", ("protocol",),
           "Groups by kind."),
    *_families("gauge", "kafka_coordinator_group_groupmetadatamanager_", (),
        {"numgroups": "Groups.",
         "numoffsets": "Committed offsets.",
         "numgroupspreparingrebalance": "Groups that wait for members.",
         "numgroupscompletingrebalance": "Groups that wait for an assignment.",
         "numgroupsstable": "Groups that work.",
         "numgroupsdead": "Groups that are gone.",
         "numgroupsempty": "Groups without members."},
    ),
    Family("barnabas_share_partitions", "gauge", ("consumergroup",),
           "Partitions that a share group reads here; on their leader."),
    Family("barnabas_share_records_in_flight", "gauge", ("consumergroup",),
           "Records given out to members of a share group and not settled; on the leader."),
)  # fmt: skip
TRANSACTIONS: Final = (
    Family(
        "barnabas_transactions",
        "gauge",
        ("state",),
        "Transactional ids by the state of their transaction; on their coordinator.",
    ),
    Family(
        "barnabas_transaction_oldest_open_seconds",
        "gauge",
        (),
        "Age of the oldest transaction that has not ended; 0 without any.",
    ),
)

GROUPS: Final[Mapping[str, Iterable[Family]]] = {
    "The node": (*BROKER, *LOOP, *TOOL),
    "Topics": (*TOPIC_TRAFFIC, *REPLICATION_TRAFFIC),
    "Requests": REQUESTS,
    "Connections": SOCKETS,
    "Controller": CONTROLLER,
    "Quorum": QUORUM,
    "Groups and their lag": CONSUMER_GROUPS,
    "Transactions": TRANSACTIONS,
    "Replicas": (*REPLICAS, *FETCHERS),
    "Waiting requests": PURGATORY,
    "Logs, disks and compaction": LOGS,
    "Partitions": PARTITIONS,
}
"""By what they are about."""
FAMILIES: Final[Mapping[str, Family]] = {
    family.name: family for families in GROUPS.values() for family in families
}
"""In the order in which a scrape has them."""
