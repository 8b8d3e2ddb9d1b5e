"""Records to tables of Iceberg, by Spark."""
