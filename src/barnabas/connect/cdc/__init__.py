"""Change data capture: from the log and the tables of a database to Debezium's records.

This package depends on no database, clock, disk or network. A database is a package in
`connect/connectors` that implements the interface in `database`; `connectors/postgres` is one.

database       the interface that a database implements: the essay is there
tables         tables, columns and rows
settings       settings that all databases share: names, defaults, and what they mean
envelopes      keys and values of a table's records, and what all records have in common
transactions   an event's place in its transaction, and the records of begin and end
changes        from a split of the log to records, on executors; notifications
batches        plans micro-batches of the log, on the driver
snapshot       tables as of one point of the log: which, in which order, and their records
signals        what signals ask for
adhoc          snapshots that signals ask for while the log is read, on the driver
incremental    the window and the chunks of an incremental snapshot: the essay is there
steps          its events and effects
chunks         reads chunks and writes their marks
queries        SQL of chunks
stored         how far it is, in Debezium's keys of stored offsets

Source: the documentation and the events of Debezium 3.3.
"""
