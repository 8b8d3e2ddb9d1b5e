"""The AVRO format of the registry, judged as Apache Avro's Java library judges.

A text goes through `json_text.py` (JSON as Jackson reads it) and `parser.py` (into the objects of
`model.py`); `canonical.py` and `normal.py` write it, `compatibility.py` compares two.
"""

from barnabas.schemas.avro.schema import AvroFormat, AvroSchema

__all__ = ["AvroFormat", "AvroSchema"]
