"""What holds for a share group: its own configuration over the node's."""

import re
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.base.config.definitions import GROUP_KEYS
from barnabas.base.config.errors import ConfigError
from barnabas.base.config.node import NodeConfig
from barnabas.metadata.image import ConfigResourceType, ConfigsImage, MetadataImage
from barnabas.share.core.states import ShareLimits

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?")


class ResetStrategy(IntEnum):
    """Where a group begins that has not begun yet."""

    EARLIEST = 0
    LATEST = 1
    BY_DURATION = 2


class OffsetReset(NamedTuple):
    """`share.auto.offset.reset`."""

    strategy: ResetStrategy
    back_ms: int = 0
    """How far back, for BY_DURATION."""


class ShareGroupSettings(NamedTuple):
    """What a group's share partitions keep to."""

    limits: ShareLimits
    reads_committed: bool
    reset: OffsetReset


class ShareSettings:
    """Settings by group, as the newest image has them."""

    __slots__ = ("_by_group", "_configs", "_defaults", "_image", "sessions_max")

    def __init__(self, config: NodeConfig, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._defaults = {
            "share.record.lock.duration.ms": str(config.int("group.share.record.lock.duration.ms")),
            "share.delivery.count.limit": str(config.int("group.share.delivery.count.limit")),
            "share.partition.max.record.locks": str(
                config.int("group.share.partition.max.record.locks")
            ),
        }
        self._configs: ConfigsImage | None = None
        self._by_group: dict[str, ShareGroupSettings] = {}
        self.sessions_max = config.int("group.share.max.share.sessions")

    def of(self, group_id: str) -> ShareGroupSettings:
        """What holds for the group now."""
        configs = self._image().configs
        if configs is not self._configs:
            self._configs = configs
            self._by_group.clear()
        found = self._by_group.get(group_id)
        if found is None:
            found = self._by_group[group_id] = self._read(configs, group_id)
        return found

    def _read(self, configs: ConfigsImage, group_id: str) -> ShareGroupSettings:
        own = configs.for_resource(ConfigResourceType.GROUP, group_id)
        values = {
            name: self._value(name, own.get(name))
            for name in (
                "share.record.lock.duration.ms",
                "share.delivery.count.limit",
                "share.partition.max.record.locks",
                "share.renew.acknowledge.enable",
                "share.isolation.level",
                "share.auto.offset.reset",
            )
        }
        return ShareGroupSettings(
            ShareLimits(
                lock_duration_ms=values["share.record.lock.duration.ms"],
                delivery_count_max=values["share.delivery.count.limit"],
                records_in_flight_max=values["share.partition.max.record.locks"],
                is_renewal_enabled=values["share.renew.acknowledge.enable"],
            ),
            values["share.isolation.level"] == "read_committed",
            parse_reset(values["share.auto.offset.reset"]),
        )

    def _value(self, name: str, text: str | None) -> Any:
        key = GROUP_KEYS[name]
        if text is not None:
            try:
                return key.parse(text)
            except ConfigError:
                text = None  # another version wrote it: what holds for all holds for this group
        default = self._defaults.get(name, key.default_text)
        assert default is not None
        return key.parse(default)


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
