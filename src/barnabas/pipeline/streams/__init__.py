"""Stream processing in Python on Spark: what `barnabas.pipeline` offers.

A pipeline is described first and built later: streams, tables and steps are plain objects, and
DataFrames are made of them when the pipeline starts, when a test runs it, or when `.df` is asked.
So describing one imports no Spark. docs/streams.md is the tutorial.
"""
