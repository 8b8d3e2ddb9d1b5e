"""Debezium's transforms: change events to rows, outboxes, and many tables to one topic."""
