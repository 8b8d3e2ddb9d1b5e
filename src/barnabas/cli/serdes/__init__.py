"""Records with a registry's schemas as JSON, and back: what `consume` and `produce` can do.

The bytes are confluent-kafka's serializers' work. They need a schema and an object, and a command
has text: so what is here finds the schema, and turns JSON into objects and objects into JSON.
"""
