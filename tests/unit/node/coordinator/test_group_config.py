"""Settings of the group coordinator, by the kind of a group."""

import pytest

from barnabas.node.coordinator.group.config import GroupConfig, ModernGroupConfig
from barnabas.node.coordinator.group.group_type import GroupType


def test_each_kind_whose_coordinator_assigns_has_settings_of_its_own() -> None:
    config = GroupConfig(
        consumer=ModernGroupConfig(size_max=1),
        share=ModernGroupConfig(size_max=2),
        streams=ModernGroupConfig(size_max=3),
    )
    kinds = [GroupType.CONSUMER, GroupType.SHARE, GroupType.STREAMS]
    assert [config.of(kind).size_max for kind in kinds] == [1, 2, 3]


def test_classic_groups_have_none_of_these_settings() -> None:
    with pytest.raises(AssertionError):
        GroupConfig().of(GroupType.CLASSIC)
