"""Topics that the cluster keeps for itself, by Kafka's names."""

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Topics that coordinators write; clients may not."""
CLUSTER_METADATA = "__cluster_metadata"
"""The metadata log: no topic of the image."""
CREATION_TIMEOUT_MS = 30_000
"""How long it may take to create topics in passing, for a request that needs them."""
