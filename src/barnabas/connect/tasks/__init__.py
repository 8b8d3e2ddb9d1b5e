"""Tasks of connectors: their micro-batches run in this process or as Spark jobs."""
