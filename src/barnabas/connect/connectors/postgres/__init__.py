"""Change capture from PostgreSQL: what is PostgreSQL's. Everything else is in `connect/cdc`.

settings      Debezium's names, what they mean beyond `cdc/settings`, and what is refused
connector     checks settings, makes the one task's reader
reader        on the driver: snapshot first, then the stream, in micro-batches
log           the log's messages and places, as `cdc/database` asks for them (pure)
positions     how far the log has been read, in stored offsets (pure)
pgoutput      the messages of logical replication (pure)
events        the source of an event, and logical messages (pure)
database      chunks, marks and tables, as `cdc/database` asks for them
snapshot      holds a snapshot of the tables and reads its splits
stream        the replication connection, and the thread that reads from it
server        connections, quoting, errors
slots         slots and publications
rights        what the user may not do, and must
catalog       what columns a table has, and parameters of schemas that tell their types
types         columns' types: schemas, defaults, and values from PostgreSQL's text (pure)
texts         arrays, hstore, money, dates and times in PostgreSQL's text (pure)

Source: the documentation and the events of Debezium's PostgreSQL connector 3.3; PostgreSQL's
"Logical Replication Message Formats".
"""
