"""Formats of files: JSON lines, Avro, Parquet, bytes; Connect's data on the other side."""
