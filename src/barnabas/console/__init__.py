"""A web console for any Kafka cluster, schema registry, Connect worker and ksqlDB server.

`services` ask and return dataclasses, `pages` make HTTP of them, and `pages/static` is what the
browser runs. `server.py` puts a console together.
"""
