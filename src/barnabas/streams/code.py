"""Functions and classes of users on their way to Spark's workers."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import ModuleType
from typing import Any

_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def send_whole(*things: Any) -> None:
    """Have the modules of functions, classes and instances sent whole, not by name.

    Workers, on other machines too, can import what is installed, but neither a pipeline's own file
    nor the modules beside it.
    """
    from pyspark import cloudpickle

    for thing in things:
        name = getattr(thing, "__module__", None) or type(thing).__module__
        module = sys.modules.get(name)
        path = None if module is None else _own_file(module)
        if path is None:
            continue
        root = os.path.dirname(path)
        for _ in range(name.count(".")):
            root = os.path.dirname(root)
        for other in list(sys.modules.values()):
            beside = _own_file(other)
            # The module that runs as __main__ is sent whole in any case.
            if beside is not None and beside.startswith(root + os.sep) and _has_name(other):
                cloudpickle.register_pickle_by_value(other)  # type: ignore[no-untyped-call]  # PySpark's


def _own_file(module: ModuleType) -> str | None:
    """The file of a module that is neither installed nor ours."""
    path = getattr(module, "__file__", None)
    if not isinstance(path, str) or not path.endswith(".py") or path.startswith(_INSTALLED):
        return None
    own = getattr(module, "__name__", "").partition(".")[0]
    return None if own == "barnabas" else os.path.abspath(path)


def _has_name(module: ModuleType) -> bool:
    return sys.modules.get(module.__name__) is module and module.__name__ != "__main__"
