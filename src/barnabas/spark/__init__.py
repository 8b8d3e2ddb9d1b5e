"""Spark sessions, their packages, and the data sources and sinks that all Spark work shares."""
