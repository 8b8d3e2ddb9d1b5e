"""The demo's lake: a bucket in an S3 server, and a table of Iceberg in it."""
