"""Records as rows of a lake's tables: what the sinks of Iceberg and Delta share.

Executors turn records into Arrow's batches, one per table; the driver adds them to each table in
one commit that also says how far each partition of the topics has come. So a table holds each
record once, even if a commit to the consumer group fails.
"""
