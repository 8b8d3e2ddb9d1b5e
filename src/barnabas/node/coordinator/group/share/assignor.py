"""The `simple` assignor: who fetches from which partitions (KIP-932).

Partitions are shared, so where there are more members than partitions each partition goes to
several. Members get numbers of partitions that differ by one at most, as far as their
subscriptions allow; within that, everyone keeps what they have.
Source: Kafka's SimpleAssignor. Not as there: no partition is passed over because the members that
come next have it already; with different subscriptions each topic is dealt by itself, as there.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.share.member import Target

NAME = "simple"

Place = tuple[Uuid, int]


def assign(
    subscriptions: Mapping[str, frozenset[Uuid]],
    former: Mapping[str, Target],
    assignable: Mapping[Uuid, Sequence[int]],
) -> dict[str, Target]:
    """Targets by member, for all members of `subscriptions`.

    `assignable` holds the partitions that may be assigned, of topics that somebody subscribes to.
    """
    had = {
        member_id: [
            (topic_id, number)
            for topic_id, numbers in former.get(member_id, {}).items()
            for number in numbers
        ]
        for member_id in subscriptions
    }
    dealt: dict[str, list[Place]] = {member_id: [] for member_id in subscriptions}
    if len(set(subscriptions.values())) <= 1:
        wanted = next(iter(subscriptions.values()), frozenset())
        _deal(list(subscriptions), had, _places(assignable, wanted), dealt)
    else:
        for topic_id in sorted(assignable):
            members = [key for key, wanted in subscriptions.items() if topic_id in wanted]
            _deal(members, had, _places(assignable, (topic_id,)), dealt)
    return {member_id: _target(places) for member_id, places in dealt.items()}


def _places(assignable: Mapping[Uuid, Sequence[int]], wanted: Iterable[Uuid]) -> list[Place]:
    return [
        (topic_id, number) for topic_id in sorted(wanted) for number in assignable.get(topic_id, ())
    ]


def _deal(
    members: list[str],
    had: Mapping[str, list[Place]],
    places: list[Place],
    dealt: dict[str, list[Place]],
) -> None:
    """Deal `places` to `members`, who all may have any of them."""
    if not members or not places:
        return
    sharing = -(-len(members) // len(places))
    shares = sharing * len(places)
    quota = {
        member_id: -(-shares * (index + 1) // len(members)) + (-shares * index // len(members))
        for index, member_id in enumerate(members)
    }
    holders: dict[Place, list[str]] = {place: [] for place in places}
    kept: dict[str, dict[Place, None]] = {member_id: {} for member_id in members}
    for member_id in members:
        for place in had[member_id]:
            if place in holders:
                holders[place].append(member_id)
                kept[member_id][place] = None
    for member_id in members:
        _return_surplus(member_id, quota[member_id], kept[member_id], holders)
    for place, having in holders.items():
        while len(having) > sharing:
            del kept[having.pop()][place]
    unfilled = deque(key for key in members if len(kept[key]) < quota[key])
    for place in sorted(places, key=lambda place: len(holders[place])):
        missing, looks = sharing - len(holders[place]), len(unfilled)
        while missing and looks:
            looks -= 1
            member_id = unfilled.popleft()
            if place not in kept[member_id]:
                kept[member_id][place] = None
                missing -= 1
            if len(kept[member_id]) < quota[member_id]:
                unfilled.append(member_id)
    for member_id in members:
        dealt[member_id] += kept[member_id]


def _return_surplus(
    member_id: str, quota: int, kept: dict[Place, None], holders: dict[Place, list[str]]
) -> None:
    """Take away what a member has beyond its quota, first what most others have too."""
    surplus = len(kept) - quota
    if surplus <= 0:
        return
    for place in sorted(kept, key=lambda place: -len(holders[place]))[:surplus]:
        del kept[place]
        holders[place].remove(member_id)


def _target(places: list[Place]) -> Target:
    partitions: dict[Uuid, list[int]] = {}
    for topic_id, number in sorted(places):
        partitions.setdefault(topic_id, []).append(number)
    return {topic_id: tuple(numbers) for topic_id, numbers in partitions.items()}
