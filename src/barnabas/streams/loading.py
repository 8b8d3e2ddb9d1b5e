"""Pipelines by name: `energy.py:pipeline`, `shop.pipelines:carts`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

from barnabas.streams.errors import PipelineError
from barnabas.streams.pipeline import Pipeline, as_pipeline

DEFAULT_NAME = "pipeline"


def load_pipeline(named: str) -> Pipeline:
    """Return the pipeline that a file or module has under a name.

    Raises PipelineError where there is none; what the module itself raises comes through.
    """
    place, _, name = named.partition(":")
    module = _from_file(place) if place.endswith(".py") else _from_module(place)
    try:
        found = getattr(module, name or DEFAULT_NAME)
    except AttributeError:
        raise PipelineError(f"{place} has nothing named {name or DEFAULT_NAME}") from None
    return as_pipeline(found, module.__name__.rpartition(".")[2])


def _from_file(path: str) -> ModuleType:
    if not os.path.exists(path):
        raise PipelineError(f"there is no file {path}")
    name = os.path.splitext(os.path.basename(path))[0]
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    # What lies beside it can be imported, as where Python runs the file itself.
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _from_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise PipelineError(f"there is no module {name}") from error
    return module
