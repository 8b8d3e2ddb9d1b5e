"""Kafka's error codes, and the two errors that the codecs raise. Source: Kafka 4.3's `Errors`."""

from enum import IntEnum


class DecodeError(ValueError):
    """A peer's bytes, or a file's, do not follow the protocol."""


class EncodeError(ValueError):
    """A message holds what its version cannot express: a bug on our side."""


class ErrorCode(IntEnum):
    """An error as it travels: an int16 with a name.

    `retriable` tells whether a client may expect the same request to succeed later. `message` is
    for people, and goes out where a response has room for one.
    """

    retriable: bool
    message: str

    def __new__(cls, code: int, retriable: bool = False, message: str = "") -> "ErrorCode":
        # The defaults are for type checkers: `ErrorCode(3)` looks a member up and never gets here.
        error = int.__new__(cls, code)
        error._value_ = code
        error.retriable = retriable
        error.message = message
        return error

    @classmethod
    def of(cls, code: int) -> "ErrorCode":
        """The error of a peer's code; UNKNOWN_SERVER_ERROR for one that we do not know."""
        known = cls._value2member_map_.get(code)
        return known if isinstance(known, cls) else cls.UNKNOWN_SERVER_ERROR

    UNKNOWN_SERVER_ERROR = (
        -1,
        False,
        "The node failed in a way it has no code for; its telemetry says more.",
    )
    NONE = 0, False, "No error."
    OFFSET_OUT_OF_RANGE = 1, False, "The partition holds nothing at that offset."
    CORRUPT_MESSAGE = 2, True, "A record batch is damaged: wrong CRC, size or layout."
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "This node knows no such topic or partition."
    INVALID_FETCH_SIZE = 4, False, "The fetch size is not valid."
    LEADER_NOT_AVAILABLE = 5, True, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = (
        6,
        True,
        "This broker does not lead the partition, or holds no replica of it.",
    )
    REQUEST_TIMED_OUT = 7, True, "The time allowed for the request ran out."
    BROKER_NOT_AVAILABLE = 8, False, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, True, "The replica is not available on this broker."
    MESSAGE_TOO_LARGE = 10, False, "A record batch is larger than max.message.bytes allows."
    STALE_CONTROLLER_EPOCH = 11, False, "The request comes from an earlier controller."
    OFFSET_METADATA_TOO_LARGE = 12, False, "The text committed along with an offset is too long."
    NETWORK_EXCEPTION = 13, True, "The connection broke before the response came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "The coordinator is still loading its state."
    COORDINATOR_NOT_AVAILABLE = 15, True, "There is no coordinator at the moment."
    NOT_COORDINATOR = 16, True, "Another broker coordinates this."
    INVALID_TOPIC_EXCEPTION = (
        17,
        False,
        "The topic's name is not allowed, or the topic is not open to this operation.",
    )
    RECORD_LIST_TOO_LARGE = 18, False, "The records do not fit into one segment."
    NOT_ENOUGH_REPLICAS = 19, True, "Fewer replicas are in sync than min.insync.replicas asks for."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        True,
        "The records were appended, but on fewer replicas than required.",
    )
    INVALID_REQUIRED_ACKS = 21, False, "acks must be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, False, "The group is not in that generation."
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "The member's protocols do not fit those of its group."
    INVALID_GROUP_ID = 24, False, "The group id is not valid."
    UNKNOWN_MEMBER_ID = 25, False, "The group has no such member."
    INVALID_SESSION_TIMEOUT = (
        26,
        False,
        "The session timeout is outside the range the broker allows.",
    )
    REBALANCE_IN_PROGRESS = 27, False, "The group is rebalancing; its members should join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "The committed offsets are too large to be stored."
    TOPIC_AUTHORIZATION_FAILED = 29, False, "Topic authorization failed."
    GROUP_AUTHORIZATION_FAILED = 30, False, "Group authorization failed."
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "Cluster authorization failed."
    INVALID_TIMESTAMP = 32, False, "A record's timestamp is outside the range the topic allows."
    UNSUPPORTED_SASL_MECHANISM = 33, False, "The SASL mechanism is not enabled."
    ILLEGAL_SASL_STATE = 34, False, "The request does not fit the state of authentication."
    UNSUPPORTED_VERSION = 35, False, "This version of the API is not supported."
    TOPIC_ALREADY_EXISTS = 36, False, "There is a topic of that name already."
    INVALID_PARTITIONS = 37, False, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = (
        38,
        False,
        "The replication factor is below 1, or above the number of usable brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = 39, False, "The assignment of replicas is not valid."
    INVALID_CONFIG = 40, False, "A setting is not valid."
    NOT_CONTROLLER = 41, True, "This node is not the active controller."
    INVALID_REQUEST = 42, False, "The request contradicts itself or the protocol."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "The record format cannot express that."
    POLICY_VIOLATION = 44, False, "A configured policy forbids that."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "The producer's sequence number skips batches."
    DUPLICATE_SEQUENCE_NUMBER = (
        46,
        False,
        "The producer's batch is older than those the broker remembers.",
    )
    INVALID_PRODUCER_EPOCH = 47, False, "The producer's epoch is not the current one."
    INVALID_TXN_STATE = 48, False, "The transaction is not in a state that allows this."
    INVALID_PRODUCER_ID_MAPPING = (
        49,
        False,
        "The producer id does not belong to the transactional id.",
    )
    INVALID_TRANSACTION_TIMEOUT = (
        50,
        False,
        "The transaction timeout exceeds transaction.max.timeout.ms.",
    )
    CONCURRENT_TRANSACTIONS = 51, True, "Another operation on the transaction is under way."
    TRANSACTION_COORDINATOR_FENCED = (
        52,
        False,
        "The markers come from an earlier transaction coordinator.",
    )
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "Transactional Id authorization failed."
    SECURITY_DISABLED = 54, False, "No authorizer is configured."
    OPERATION_NOT_ATTEMPTED = 55, False, "Not tried, since another operation of the request failed."
    KAFKA_STORAGE_ERROR = 56, True, "The disk that holds the log failed."
    LOG_DIR_NOT_FOUND = 57, False, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, False, "Authentication failed."
    UNKNOWN_PRODUCER_ID = 59, False, "The broker holds no record of that producer id."
    REASSIGNMENT_IN_PROGRESS = 60, False, "Replicas of the partition are being moved."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "Delegation tokens are not enabled."
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = (
        63,
        False,
        "The principal neither owns the token nor may renew it.",
    )
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        False,
        "Delegation tokens are not issued on this kind of connection.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "Delegation Token authorization failed."
    DELEGATION_TOKEN_EXPIRED = 66, False, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, False, "The type of the principal is not supported."
    NON_EMPTY_GROUP = 68, False, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, False, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "The broker does not keep that fetch session."
    INVALID_FETCH_SESSION_EPOCH = 71, True, "The fetch session is not at that epoch."
    LISTENER_NOT_FOUND = (
        72,
        True,
        "The leader has no listener of the name through which this request came.",
    )
    TOPIC_DELETION_DISABLED = 73, False, "Topics may not be deleted here."
    FENCED_LEADER_EPOCH = 74, True, "The leader epoch of the request has passed."
    UNKNOWN_LEADER_EPOCH = 75, True, "The leader epoch of the request is ahead of this broker's."
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        False,
        "The compression is not known in this version of the API.",
    )
    STALE_BROKER_EPOCH = 77, False, "The broker has registered again since."
    OFFSET_NOT_AVAILABLE = 78, True, "The new leader does not know the high watermark yet."
    MEMBER_ID_REQUIRED = 79, False, "Join again with the member id that this response gives."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "The preferred leader is not available."
    GROUP_MAX_SIZE_REACHED = 81, False, "The group has as many members as it may have."
    FENCED_INSTANCE_ID = 82, False, "Another member has taken over the group instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "None of the replicas that could lead is available."
    ELECTION_NOT_NEEDED = 84, True, "The partition has the right leader already."
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "No replicas of the partition are being moved."
    GROUP_SUBSCRIBED_TO_TOPIC = (
        86,
        False,
        "The group reads the topic, so that its offsets must stay.",
    )
    INVALID_RECORD = 87, False, "A record breaks a rule of its topic or of the format."
    UNSTABLE_OFFSET_COMMIT = 88, True, "A transaction that commits these offsets has not ended yet."
    THROTTLING_QUOTA_EXCEEDED = 89, True, "A quota is exceeded; try again later."
    PRODUCER_FENCED = 90, False, "A newer producer uses the transactional id."
    RESOURCE_NOT_FOUND = 91, False, "There is no such resource."
    DUPLICATE_RESOURCE = 92, False, "The request names a resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, False, "The credential does not meet the requirements."
    INCONSISTENT_VOTER_SET = (
        94,
        False,
        "Sender or receiver is not among the voters it should be among.",
    )
    INVALID_UPDATE_VERSION = 95, False, "The feature cannot go to that version."
    FEATURE_UPDATE_FAILED = 96, False, "The features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = (
        97,
        False,
        "The principal inside an envelope cannot be read.",
    )
    SNAPSHOT_NOT_FOUND = 98, False, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, False, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, True, "This node knows no topic of that id."
    DUPLICATE_BROKER_REGISTRATION = 101, False, "A live broker uses this id already."
    BROKER_ID_NOT_REGISTERED = 102, False, "No broker is registered under that id."
    INCONSISTENT_TOPIC_ID = 103, True, "The topic's id differs from the one in the request."
    INCONSISTENT_CLUSTER_ID = 104, False, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "The fetch session mixes topic names and topic ids."
    INELIGIBLE_REPLICA = 107, False, "The proposed ISR holds a replica that may not be in it."
    NEW_LEADER_ELECTED = 108, False, "The change was made, and moved leadership to another replica."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "The offset is found in remote storage only."
    FENCED_MEMBER_EPOCH = (
        110,
        False,
        "The member epoch is not valid; give up all partitions and join again.",
    )
    UNRELEASED_INSTANCE_ID = 111, False, "Another member still holds the instance id."
    UNSUPPORTED_ASSIGNOR = 112, False, "The group cannot use that assignor."
    STALE_MEMBER_EPOCH = (
        113,
        False,
        "The member epoch has passed; the next heartbeat brings the new one.",
    )
    MISMATCHED_ENDPOINT_TYPE = 114, False, "The request was sent to the wrong kind of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "This kind of endpoint is not supported."
    UNKNOWN_CONTROLLER_ID = 116, False, "There is no such controller."
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "The telemetry subscription is unknown or outdated."
    TELEMETRY_TOO_LARGE = 118, False, "The pushed metrics are larger than the broker accepts."
    INVALID_REGISTRATION = 119, False, "The controller rejects the registration."
    TRANSACTION_ABORTABLE = (
        120,
        False,
        "The transaction must be aborted; the producer may go on afterwards.",
    )
    INVALID_RECORD_STATE = (
        121,
        False,
        "The records are not in a state that allows this acknowledgement.",
    )
    SHARE_SESSION_NOT_FOUND = 122, True, "The broker does not keep that share session."
    INVALID_SHARE_SESSION_EPOCH = 123, True, "The share session is not at that epoch."
    FENCED_STATE_EPOCH = 124, False, "The state epoch of the share partition differs."
    INVALID_VOTER_KEY = 125, False, "The voter key names another replica than this one."
    DUPLICATE_VOTER = 126, False, "The replica is a voter already."
    VOTER_NOT_FOUND = 127, False, "The replica is not a voter."
    INVALID_REGULAR_EXPRESSION = 128, False, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, False, "The client must start again from its bootstrap servers."
    STREAMS_INVALID_TOPOLOGY = 130, False, "The Streams topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "The epoch of the Streams topology is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, False, "The Streams topology has been replaced by a newer one."
    SHARE_SESSION_LIMIT_REACHED = 133, True, "The broker keeps as many share sessions as it may."
