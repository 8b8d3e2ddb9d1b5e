"""Barnabas beside Apache Kafka on one machine: speed, processor time, memory, start-up.

`python -m bench` runs it. Both servers are started from a configuration that differs in paths
and ports only, driven by the same clients, one after the other, in interleaved rounds, and
compared as ratios with their spread.

Beside it are scripts that measure one part each, as `python -m bench.connect_file`; what a script
measures, and how it is called, is at its head.
"""
