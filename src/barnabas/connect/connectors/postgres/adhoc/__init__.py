"""Snapshots that signals ask for, while the log is read.

signals       what signals say (pure)
channels      where signals come from beside the log
steps         what happens to an incremental snapshot, and what is then to be done (pure)
incremental   the window and the chunks: the essay is there (pure)
stored        how far it is, in Debezium's keys of stored offsets (pure)
java_objects  keys as Java serializes them (pure)
queries       the queries of chunks, and marks (pure)
chunks        reads chunks, and writes marks
driver        on the driver: follows the log, hears signals, does what is to be done
items         what comes of it, between the log's messages
records       records of chunks' rows and of notifications, on executors
"""
