"""Settings of the group coordinator, by the kind of a group."""

import pytest

from barnabas.coordinator.group.config import GroupConfig, ModernGroupConfig
from barnabas.coordinator.group.group_type import GroupType


def test_each_kind_whose_coordinator_assigns_has_settings_of_its_own() -> None:
    kinds = [GroupType.CONSUMER, GroupType.SHARE, GroupType.STREAMS]
    sizes = {kind: size for size, kind in enumerate(kinds)}
    config = GroupConfig(**{kind: ModernGroupConfig(size_max=sizes[kind]) for kind in kinds})
    assert {kind: config.of(kind).size_max for kind in kinds} == sizes


def test_classic_groups_have_none_of_these_settings() -> None:
    with pytest.raises(AssertionError):
        GroupConfig().of(GroupType.CLASSIC)
