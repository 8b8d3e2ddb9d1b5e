"""Settings of a share group: its own configuration over the node's."""

import re
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.base.errors import ConfigError
from barnabas.node.config.definitions import GROUP_KEYS
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.image import ConfigResourceType, ConfigsImage, MetadataImage
from barnabas.node.share.core.states import ShareLimits

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?")

_LIMITED = {
    "share.record.lock.duration.ms": (
        "group.share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    "share.delivery.count.limit": (
        "group.share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    "share.partition.max.record.locks": (
        "group.share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
}
"""Settings of a group, each with the node's keys for its default, minimum and maximum."""


class ResetStrategy(IntEnum):
    """The offset at which a new group starts."""

    EARLIEST = 0
    LATEST = 1
    BY_DURATION = 2


class OffsetReset(NamedTuple):
    """`share.auto.offset.reset`."""

    strategy: ResetStrategy
    back_ms: int = 0
    """The duration back from now, for BY_DURATION."""


class ShareGroupSettings(NamedTuple):
    """The limits of a group's share partitions."""

    limits: ShareLimits
    reads_committed: bool
    reset: OffsetReset


class ShareSettings:
    """Settings by group, as the newest image has them."""

    __slots__ = ("_by_group", "_configs", "_image", "_node", "sessions_max")

    def __init__(self, config: NodeConfig, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._node = {name: tuple(map(config.get_int, keys)) for name, keys in _LIMITED.items()}
        self._configs: ConfigsImage | None = None
        self._by_group: dict[str, ShareGroupSettings] = {}
        self.sessions_max = config.get_int("group.share.max.share.sessions")

    def of(self, group_id: str) -> ShareGroupSettings:
        """The current settings of the group."""
        configs = self._image().configs
        if configs is not self._configs:
            self._configs = configs
            self._by_group.clear()
        settings = self._by_group.get(group_id)
        if settings is None:
            settings = self._by_group[group_id] = self._read(configs, group_id)
        return settings

    def _read(self, configs: ConfigsImage, group_id: str) -> ShareGroupSettings:
        own = configs.for_resource(ConfigResourceType.GROUP, group_id)
        lock_duration_ms, delivery_count_max, records_in_flight_max = (
            self._limited(name, own.get(name)) for name in _LIMITED
        )
        is_renewal_enabled, isolation_level, reset = (
            _value(name, own.get(name))
            for name in (
                "share.renew.acknowledge.enable",
                "share.isolation.level",
                "share.auto.offset.reset",
            )
        )
        return ShareGroupSettings(
            ShareLimits(
                lock_duration_ms=lock_duration_ms,
                delivery_count_max=delivery_count_max,
                records_in_flight_max=records_in_flight_max,
                is_renewal_enabled=is_renewal_enabled,
            ),
            isolation_level == "read_committed",
            parse_reset(reset),
        )

    def _limited(self, name: str, text: str | None) -> int:
        """The group's value, within limits that may have been others when it was set."""
        value, low, high = self._node[name]
        own = _parse(name, text)
        return value if own is None else min(max(own, low), high)


def _value(name: str, text: str | None) -> Any:
    """The group's value, or the key's default."""
    own = _parse(name, text)
    return GROUP_KEYS[name].default if own is None else own


def _parse(name: str, text: str | None) -> Any:
    """The value; None also where another version wrote what is none here."""
    if text is None:
        return None
    try:
        return GROUP_KEYS[name].parse(text)
    except ConfigError:
        return None


def parse_reset(text: str) -> OffsetReset:
    """`earliest`, `latest` or `by_duration:` and a duration, as its key's check lets it be."""
    kind, _, duration = text.partition(":")
    if kind == "earliest":
        return OffsetReset(ResetStrategy.EARLIEST)
    if kind == "latest":
        return OffsetReset(ResetStrategy.LATEST)
    match = _DURATION.fullmatch(duration.upper())
    if match is None:
        raise ValueError(f"not a duration: {duration!r}")
    days, hours, minutes, seconds, fraction = match.groups("0")
    total_seconds = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)
    back_ms = total_seconds * 1000 + int(fraction.ljust(9, "0")) // 1_000_000
    return OffsetReset(ResetStrategy.BY_DURATION, back_ms)
