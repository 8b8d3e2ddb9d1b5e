"""Connectors: sources and sinks without code, with Kafka Connect's interfaces, run by Spark.

data         schemas, structs, headers: what records are made of between systems
config       definitions of settings, their validation, secrets from providers
converters   bytes of records to data and back
transforms   single-message transforms and predicates
errors       tolerance, retries, dead letters
connectors   one module or folder per system
tasks        runs one task's micro-batches, in this process or as Spark jobs
worker       which connectors and tasks there are, who runs them, in what state
rest         Kafka Connect's REST interface
"""
