"""Partitions on disk, in Kafka's directory format.

`manager` looks after the log directories, `partition_log` is one partition's log, and `dump`
prints what the files hold. Beneath: `segment` (one `.log` file and its indexes), `index`,
`producers` (who wrote what, for idempotence and transactions), `leader_epochs`, `checkpoints`;
`reader`, `timestamp_lookup`, `flusher`, `retention` and `recovery` are what a log does with them.
"""
