"""Checks that a setting names a plugin of the right kind, and what plugins there are."""

from __future__ import annotations

from typing import Any, Final

from barnabas import __version__
from barnabas.connect import plugins
from barnabas.connect.allowed_plugins import is_on, own_classes
from barnabas.connect.config.definition import Recommender, Validator
from barnabas.connect.connectors.base import SinkConnector, SourceConnector
from barnabas.connect.converters.base import Converter, HeaderConverter
from barnabas.connect.transforms.base import Predicate, Transform
from barnabas.schemas.data.errors import ConfigError

BASES: Final[dict[plugins.Kind, tuple[str, type]]] = {
    "source": ("SourceConnector", SourceConnector),
    "sink": ("SinkConnector", SinkConnector),
    "converter": ("Converter", Converter),
    "header_converter": ("HeaderConverter", HeaderConverter),
    "transformation": ("Transformation", Transform),
    "predicate": ("Predicate", Predicate),
}
"""Java's interface of each kind, and the Python class that stands for it."""


def plugin_of(kind: plugins.Kind) -> Validator:
    """The name of a class of that kind, or none."""

    def check(_name: str, value: Any) -> None:
        if value is not None:
            load_of(kind, value)

    return check


def load_of(kind: plugins.Kind, class_name: str) -> Any:
    """Return a class by its name. Raises ConfigError if it is of another kind."""
    interface, base = BASES[kind]
    plugin = plugins.load(class_name, kind)
    if not isinstance(plugin, type) or not issubclass(plugin, base):
        verb, what = (
            ("extend", "class") if kind in ("source", "sink") else ("implement", "interface")
        )
        raise ConfigError(f"Class class {class_name} does not {verb} the {interface} {what}")
    return plugin


def names_of(kind: plugins.Kind) -> Recommender:
    """All plugins of a kind."""

    def recommend(_name: str, _parsed: Any) -> list[Any]:
        return listed(kind)

    return recommend


def listed(kind: plugins.Kind) -> list[str]:
    """Return the names of all plugins of a kind that configurations may use."""
    known = plugins.HEADER_CONVERTERS if kind == "header_converter" else plugins.PLUGINS
    built_in = (plugin.class_name for plugin in known.values() if plugin.kind == kind)
    own = (name for name in own_classes() if kind_of(name) == kind)
    return sorted([*filter(is_on, built_in), *own])


def version_of(class_name: str | None, kind: plugins.Kind) -> str | None:
    """Return the version of a plugin; None for an unknown name."""
    if class_name is None:
        return None
    try:
        plugin = plugins.load(class_name.strip(), kind)
    except ConfigError:
        return None
    return getattr(plugin, "version", "") or __version__


def kind_of(class_name: str) -> plugins.Kind | None:
    """Return the kind of a class; None if there is no such class or it is not a plugin."""
    try:
        plugin = plugins.load(class_name)
    except ConfigError:
        return None
    for kind, (_, base) in BASES.items():
        if isinstance(plugin, type) and issubclass(plugin, base):
            return kind
    return None
