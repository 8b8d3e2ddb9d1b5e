"""Log configurations, one object for all partitions that are configured alike."""

from collections.abc import Callable

from barnabas.node.log.config import LogConfig
from barnabas.node.metadata.image import ConfigsImage, MetadataImage

KEPT_MAX = 1000
"""Different ones; beyond that, all are forgotten, and those in use live on with their logs."""


class SharedLogConfigs:
    """Thousands of partitions have a handful of configurations between them."""

    __slots__ = ("_known", "_last", "_make")

    def __init__(self, make: Callable[[MetadataImage, str], LogConfig]) -> None:
        self._make = make
        self._known: dict[LogConfig, LogConfig] = {}
        self._last: tuple[ConfigsImage, str, LogConfig] | None = None

    def of(self, image: MetadataImage, topic: str) -> LogConfig:
        """A topic's configuration; the partitions of a topic mostly ask one after the other."""
        last = self._last
        if last is not None and last[0] is image.configs and last[1] == topic:
            return last[2]
        made = self._make(image, topic)
        if len(self._known) >= KEPT_MAX:
            self._known.clear()
        config = self._known.setdefault(made, made)
        self._last = (image.configs, topic, config)
        return config
