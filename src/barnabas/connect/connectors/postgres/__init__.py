"""Change capture from PostgreSQL: a snapshot of tables, then what its write-ahead log says.

definition    what can be configured: Debezium's names
unsupported   settings of Debezium's that are refused (pure)
settings      what a configuration means: tables, columns, topics
connector     checks settings, makes the one task's reader
log_state     what is known of the log where it is read (pure)
reader        on the driver: snapshot first, then the stream, in micro-batches
snapshot      the tables' rows as of one point of the log, in splits
stream        the replication connection, and the thread that reads from it
positions     how far the log has been read, as stored offsets say it
server        connections, slots, publications, errors
tables        what a table is made of (pure)
catalog       what columns a table has
pgoutput      the messages of logical replication (pure)
types         columns' types: schemas, and values from PostgreSQL's text (pure)
source_types  what schemas say of columns' types in the database (pure)
temporal      dates, times and intervals (pure)
texts         arrays, hstore and money in PostgreSQL's text (pure)
defaults      what a column's DEFAULT means (pure)
envelopes     Debezium's records of changes (pure)
transactions  an event's place in its transaction (pure)
records       what records of snapshot and log have in common
changes       from messages to records, on executors
adhoc/        snapshots that signals ask for, while the log is read

Source: the documentation and the events of Debezium's PostgreSQL connector 3.3; PostgreSQL's
"Logical Replication Message Formats".
"""
