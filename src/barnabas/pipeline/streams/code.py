"""Functions and classes of users on their way to Spark's workers."""

from __future__ import annotations

import sys
import sysconfig
from typing import Any

_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def send_whole(*things: Any) -> None:
    """Have the modules of functions, classes and instances sent whole, not by name.

    Workers, on other machines too, can import what is installed, but not a pipeline's own file.
    """
    from pyspark import cloudpickle

    for thing in things:
        name = getattr(thing, "__module__", None) or type(thing).__module__
        module = sys.modules.get(name)
        if module is None or name == "__main__" or name.partition(".")[0] == "barnabas":
            continue
        path = getattr(module, "__file__", None)
        if path is not None and not path.startswith(_INSTALLED):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # PySpark's
