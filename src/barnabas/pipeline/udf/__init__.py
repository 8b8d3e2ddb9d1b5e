"""Functions of one's own for SQL, in Python: `@udf`, `@udaf` and `@udtf` declare them.

docs/sql/udf.md tells how; `load_extensions` finds them for servers and tests.
"""

from barnabas.pipeline.udf.aggregates import udaf
from barnabas.pipeline.udf.declaring import DeclarationError
from barnabas.pipeline.udf.loading import ExtensionError, load_extensions
from barnabas.pipeline.udf.merging import functions_of
from barnabas.pipeline.udf.scalars import udf, udtf

__all__ = [
    "DeclarationError",
    "ExtensionError",
    "functions_of",
    "load_extensions",
    "udaf",
    "udf",
    "udtf",
]
