"""Runs the micro-batches of one task, in this process or as Spark jobs."""
