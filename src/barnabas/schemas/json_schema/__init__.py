"""JSON Schema, drafts 4 to 2020-12, as a format of the registry.

`schema.py` is the way in. A text goes through `text.py` (JSON, with bounds), `dialect.py` (which
draft), `keywords.py` (the rules of the metaschema) and `references.py` (where each `$ref` leads).
Comparing goes through `model/` (what the keywords of a schema say together) and `diff/`.
"""

from barnabas.schemas.json_schema.schema import JsonSchema, JsonSchemaFormat

__all__ = ["JsonSchema", "JsonSchemaFormat"]
