"""The registry's REST interface: Confluent's routes, codes and JSON, over `registry.service`.

Of schema-registry 8.5 it leaves out on purpose: creating STRONG associations, batches of
associations, the key registry, `format=logical`, the OpenAPI document, and changes of exporters
(their list is empty). It differs where Confluent's fails: an offset below 0 counts as 0, PUT /mode
without a mode gets 42204, a path that is not percent-encoded UTF-8 gets 400.
"""
