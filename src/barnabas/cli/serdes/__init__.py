"""Records with a registry's schemas as JSON, and back: what `consume` and `produce` can do.

The bytes are confluent-kafka's serializers' work, and not that of `schemas/converters`: those give
Connect's data, which lose what the JSON encodings of Avro and Protobuf show (the branch of a union,
a field that is left out, logical types as they are stored), and they do not refuse a record whose
schema has rules that nothing here can run, as these do. The serializers need a schema and an
object, and a command has text: so what is here finds the schema, and turns JSON into objects and
objects into JSON.
"""
