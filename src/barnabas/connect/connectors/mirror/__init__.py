"""MirrorMaker's three connectors: topics, group offsets and heartbeats from cluster to cluster."""
