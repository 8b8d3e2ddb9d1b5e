"""Snapshots that signals ask for, while the log is read: incremental ones and blocking ones."""
