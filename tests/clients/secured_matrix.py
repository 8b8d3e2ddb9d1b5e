"""Which modules run with a login too, with `BARNABAS_TEST_SECURITY`: all but those listed here.

They run unchanged: `support.client_logins` knows how to log in at the session's cluster.
"""

from pathlib import Path

OWN_LOGINS = "has separate users, certificates or ACLs"
OWN_NODES = "starts and ends nodes"
OWN_BYTES = "sends bytes that no client sends"
PRODUCT = "is about a product on top of clients, whose logins have tests of their own"
LEFT_OUT = {
    "acls": OWN_LOGINS,
    "admin_programs": OWN_LOGINS,
    "bad_input": OWN_BYTES,
    "cli_cluster": OWN_NODES,
    "cli_command_config": OWN_LOGINS,
    "cli_dev_nodes": OWN_NODES,
    "cli_node": OWN_NODES,
    "cli_records_with_schemas": PRODUCT,
    "cli_registry": PRODUCT,
    "clients_above_quotas": OWN_NODES,
    "compacted_topic": OWN_NODES,
    "compression_bombs": OWN_BYTES,
    "connect_": PRODUCT,
    "datasource_": PRODUCT,
    "demo_": PRODUCT,
    "every_version": OWN_BYTES,
    "group_directories": OWN_NODES,
    "group_rights": OWN_LOGINS,
    "java_directory_lock": OWN_NODES,
    "java_log_dirs": OWN_NODES,
    "java_secured_tools": OWN_LOGINS,
    "kraft_upgrade": OWN_NODES,
    "least_rights": OWN_LOGINS,
    "left_behind": OWN_NODES,
    "mixed_": OWN_NODES,
    "node_metrics": OWN_NODES,
    "refusals": OWN_BYTES,
    "registry_": PRODUCT,
    "required_rights_acls": OWN_LOGINS,
    "rights_with_librdkafka": OWN_LOGINS,
    "sasl": OWN_LOGINS,
    "schema_validation": PRODUCT,
    "scram_cluster": OWN_LOGINS,
    "secure": OWN_LOGINS,
    "share_source": PRODUCT,
    "spark_": PRODUCT,
    "sql_": PRODUCT,
    "streams_on_cluster": PRODUCT,
    "streams_transcript": OWN_NODES,
    "three_nodes": "is a selection of what runs here as a whole",
    "tls": OWN_LOGINS,
    "token_clients": OWN_LOGINS,
    "warnings_as_errors": OWN_NODES,
    "wrong_logins": OWN_LOGINS,
    "zero_timestamps": PRODUCT,
}
"""Prefixes of modules that take no part, with the reason."""


def left_out(path: Path) -> bool:
    """Whether a module takes no part."""
    return path.stem.removeprefix("test_").startswith(tuple(LEFT_OUT))
