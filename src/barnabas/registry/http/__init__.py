"""The registry's REST interface: Confluent's routes, codes and JSON, over `registry.service`."""
