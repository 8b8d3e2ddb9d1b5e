"""What is in files: JSON lines, Avro, Parquet, bytes; Connect's data on either side."""
