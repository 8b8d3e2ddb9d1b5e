"""The demo's PostgreSQL: where the stations' table is, as in an operator's own systems."""
