"""Configuration that changes while a node runs: `on_config(keys, callback)`.

Dynamic values are metadata, so each change of the image may bring some. Who works by a broker key
that may change says so once, with a callback that takes the configuration as it then holds. A key
of a topic or a group is read from the image where the topic or the group is looked up.
"""

import logging
from collections.abc import Callable, Collection
from typing import Any

from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.replay import ImageDelta

ConfigCallback = Callable[[NodeConfig], None]

telemetry = logging.getLogger(__name__)


class _Watch:
    """Some keys, their values when they were last told, and whom to tell."""

    __slots__ = ("callback", "keys", "values")

    def __init__(
        self, keys: frozenset[str], values: dict[str, Any], callback: ConfigCallback
    ) -> None:
        self.keys = keys
        self.values = values
        self.callback = callback


class DynamicConfig:
    """This broker's configuration as it holds now, and who follows it."""

    __slots__ = ("_effective", "_watches", "current")

    def __init__(self, effective: EffectiveConfig) -> None:
        self.current = effective.static
        """The file's settings, overridden by the committed image."""
        self._effective = effective
        self._watches: list[_Watch] = []

    def on_config(self, keys: Collection[str], callback: ConfigCallback) -> None:
        """Call `callback` now, and whenever the value of one of the broker `keys` changes.

        Keys of a listener count too (`listener.name.<name>.<key>`). What `callback`
        raises now is raised: it is no fault of the cluster's values, since `current` leaves out
        those that cannot be used. Later it is logged and keeps no other from being called.
        Raises KeyError for a key that Kafka does not have.
        """
        watch = _Watch(frozenset(keys), self.current.values_of(keys), callback)
        callback(self.current)
        self._watches.append(watch)

    def image_changed(self, delta: ImageDelta, image: MetadataImage) -> None:
        """Follow one change of the committed image; call who works by what it changed."""
        if not delta.configs:
            return
        self.current = self._effective.broker(image.configs)
        for watch in self._watches:
            values = self.current.values_of(watch.keys)
            if values != watch.values:
                watch.values = values
                self._call(watch)

    def _call(self, watch: _Watch) -> None:
        try:
            watch.callback(self.current)
        except Exception:  # noqa: BLE001  # our own fault, and others still have to hear
            telemetry.exception("cannot apply a change of %s", ", ".join(sorted(watch.keys)))
