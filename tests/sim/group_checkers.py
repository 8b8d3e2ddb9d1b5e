"""Is this history one that a correct group could have given? Checkers as in `checkers.py`."""

from collections.abc import Iterable
from typing import TypeVar

from barnabas.base.ids import TopicPartition
from sim.sim_history import Anomaly, History, OffsetCommit, OffsetFetch, Outcome, Tenure

Key = tuple[str, TopicPartition]
"""A group and a partition."""
T = TypeVar("T", Tenure, OffsetCommit, OffsetFetch)


def two_owners(tenures: Iterable[Tenure]) -> list[Anomaly]:
    """A partition that two members of a group had at once.

    Each coordinator is compared with itself: one that was replaced and does not know it yet may
    go on to answer heartbeats, of those who cannot know better either. What is given in an epoch
    is committed first, so in one epoch nobody can have given a partition twice. A member that was
    frozen may learn late of what it was given: of two epochs the higher one is later.
    """
    found = []
    for (group, partition), list_of in _by_key(tenures).items():
        list_of.sort(key=lambda tenure: (tenure.epoch, tenure.began_s))
        for index, later in enumerate(list_of):
            for earlier in list_of[:index]:
                if earlier.member == later.member:
                    continue
                confirmed_s = earlier.confirmed_s.get(later.coordinator, 0.0)
                if confirmed_s > later.began_s or earlier.epoch == later.epoch:
                    found.append(
                        Anomaly(
                            "two-owners",
                            f"{partition} in group {group}: {earlier.member} has it since "
                            f"{earlier.began_s:.3f} s (epoch {earlier.epoch}), confirmed at "
                            f"{confirmed_s:.3f} s; {later.member} got it at "
                            f"{later.began_s:.3f} s (epoch {later.epoch})",
                        )
                    )
    return found


def lost_commits(commits: Iterable[OffsetCommit], fetches: Iterable[OffsetFetch]) -> list[Anomaly]:
    """A committed offset that is behind one acknowledged before it was asked for, or nobody's.

    Members only go forward from what is committed, so an offset never goes back.
    """
    found = []
    commits_of = _by_key(commits)
    for (group, partition), list_of in _by_key(fetches).items():
        made = commits_of.get((group, partition), [])
        for fetch in list_of:
            floor = max(
                (
                    commit.offset
                    for commit in made
                    if commit.outcome is Outcome.OK and commit.completed_s <= fetch.invoked_s
                ),
                default=0,
            )
            possible = {
                commit.offset
                for commit in made
                if commit.outcome is not Outcome.FAILED and commit.invoked_s <= fetch.completed_s
            }
            where = f"{partition} in group {group}: {fetch.who} at {fetch.completed_s:.3f} s"
            if fetch.offset < floor:
                found.append(
                    Anomaly("lost-commit", f"{where} found {fetch.offset}, {floor} was committed")
                )
            elif fetch.offset and fetch.offset not in possible:
                found.append(
                    Anomaly("unwritten-commit", f"{where} found {fetch.offset}, nobody's offset")
                )
    return found


def former_commits(commits: Iterable[OffsetCommit], tenures: Iterable[Tenure]) -> list[Anomaly]:
    """A commit that was taken from a member when another one had the partition already."""
    found = []
    tenures_of = _by_key(tenures)
    for (group, partition), made in _by_key(commits).items():
        for commit in made:
            if commit.epoch < 0 or commit.outcome is not Outcome.OK:
                continue
            for tenure in tenures_of.get((group, partition), ()):
                if (
                    tenure.member != commit.member
                    and tenure.epoch > commit.epoch
                    and tenure.began_s < commit.invoked_s
                ):
                    found.append(
                        Anomaly(
                            "former-commit",
                            f"{partition} in group {group}: {commit.member} committed "
                            f"{commit.offset} in epoch {commit.epoch} at {commit.invoked_s:.3f} s; "
                            f"{tenure.member} had it since {tenure.began_s:.3f} s "
                            f"(epoch {tenure.epoch})",
                        )
                    )
                    break
    return found


def group_skips(history: History, final: dict[TopicPartition, dict[int, str]]) -> list[Anomaly]:
    """Records before what a group has committed in the end that none of its members was given."""
    found = []
    seen: dict[Key, set[int]] = {}
    for poll in history.polls:
        group = history.group_of.get(poll.consumer)
        if group is not None:
            offsets = seen.setdefault((group, poll.topic_partition), set())
            offsets.update(offset for offset, _ in poll.records)
    for fetch in history.offset_fetches:
        if not fetch.is_final:
            continue
        given = seen.get((fetch.group, fetch.topic_partition), set())
        missed = [
            offset
            for offset in final.get(fetch.topic_partition, {})
            if offset < fetch.offset and offset not in given
        ]
        if missed:
            found.append(
                Anomaly(
                    "group-skip",
                    f"{fetch.topic_partition}: group {fetch.group} committed {fetch.offset} "
                    f"and was never given {missed[:5]}",
                )
            )
    return found


def _by_key(entries: Iterable[T]) -> dict[Key, list[T]]:
    by_key: dict[Key, list[T]] = {}
    for entry in entries:
        by_key.setdefault((entry.group, entry.topic_partition), []).append(entry)
    return by_key
