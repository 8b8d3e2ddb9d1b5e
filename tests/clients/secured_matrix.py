"""Which modules run with a login too, with `BARNABAS_TEST_SECURITY`: all but those listed here.

Modules without a test of the session's cluster need no entry: `conftest.py` leaves them out. The
others run unchanged: `support.client_logins` knows how to log in at the session's cluster.
"""

from pathlib import Path

OWN_LOGINS = "has separate users, certificates or ACLs"
OWN_BYTES = "sends bytes that no client sends"
PRODUCT = "is about a product on top of clients, whose logins have tests of their own"
LEFT_OUT = {
    "bad_input": OWN_BYTES,
    "cli_records_with_schemas": PRODUCT,
    "cli_registry": PRODUCT,
    "compression_bombs": OWN_BYTES,
    "connect_": PRODUCT,
    "datasource_": PRODUCT,
    "every_version": OWN_BYTES,
    "refusals": OWN_BYTES,
    "registry_": PRODUCT,
    "sasl": OWN_LOGINS,
    "secure": OWN_LOGINS,
    "share_source": PRODUCT,
    "spark_": PRODUCT,
    "sql_": PRODUCT,
    "streams_on_cluster": PRODUCT,
    "three_nodes": "is a selection of what runs here as a whole",
    "zero_timestamps": PRODUCT,
}
"""Prefixes of modules that take no part, with the reason."""


def left_out(path: Path) -> bool:
    """Return whether a module takes no part."""
    return path.stem.removeprefix("test_").startswith(tuple(LEFT_OUT))
