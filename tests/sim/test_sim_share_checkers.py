"""Each checker of share groups finds what it is named after, and nothing in a good history."""

from collections.abc import Callable

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.node.share.core.states import AcknowledgeType
from sim.share_checkers import check_shares
from sim.share_history import Hold, SessionSeen, ShareDelivery, ShareHistory, StartSeen
from sim.sim_history import Outcome

T = TopicPartition("t", 0)
ACCEPT, RELEASE = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE


class Story:
    """Deliveries of offset 0 by one leader, with locks of a second and three deliveries at most."""

    def __init__(self) -> None:
        self.history = ShareHistory(1_000, 3)
        self.sessions: dict[str, SessionSeen] = {}

    def gives(
        self, member: str, at_s: float, count: int = 1, *, hosted: int = 1, epoch: int = 1
    ) -> Hold:
        """The member has the record a little later."""
        self.history.deliveries.append(
            ShareDelivery("g", member, T, 0, 0, count, at_s, "node1", hosted, epoch)
        )
        session = self.sessions.setdefault(member, SessionSeen(member, "node1"))
        hold = Hold("g", member, T, 0, count, session, at_s + 0.01)
        self.history.holds.append(hold)
        return hold

    def sees_start(self, offset: int, at_s: float) -> None:
        self.history.starts.append(StartSeen("g", T, offset, at_s, at_s + 0.1))

    def anomalies(self) -> set[str]:
        found = check_shares(self.history, {T: {0: "a"}}, ["g"], is_durable=True)
        return {anomaly.name for anomaly in found}


def says(hold: Hold, kind: AcknowledgeType, at_s: float, outcome: Outcome = Outcome.OK) -> None:
    hold.kind, hold.said_s, hold.answered_s, hold.outcome = kind, at_s, at_s + 0.1, outcome


def good(story: Story) -> None:
    says(story.gives("a", 1.0), RELEASE, 1.2)
    story.gives("b", 1.4, 2)  # whose lock runs out
    says(story.gives("a", 2.4, 3), ACCEPT, 3.0)
    story.sessions["b"].confirmed_s = 9.0
    story.sees_start(0, 1.0)
    story.sees_start(1, 4.0)
    story.history.is_drained = True


def of_a_new_leader(story: Story) -> None:
    says(story.gives("a", 1.0), RELEASE, 1.2)
    story.gives("b", 1.4, 2)
    story.sessions["b"].confirmed_s = 9.0
    says(story.gives("a", 1.5, 2, hosted=2, epoch=2), ACCEPT, 2.0)
    story.gives("c", 3.0, 3)  # the old one does not know yet


def acknowledged_behind_the_start(story: Story) -> None:
    late = story.gives("a", 1.0)
    says(story.gives("b", 2.1, 2), ACCEPT, 2.2)
    says(late, ACCEPT, 3.0)


def released_by_what_was_meant_of_the_hold_before(story: Story) -> None:
    late = story.gives("a", 1.0)
    story.gives("a", 2.1, 2)  # which it forgets, but not the first
    says(late, RELEASE, 2.3)
    story.gives("b", 2.5, 3)
    story.sessions["a"].confirmed_s = 2.6


def accepted_too_late_for_the_last_time(story: Story) -> None:
    says(story.gives("a", 1.0, 3), ACCEPT, 2.1)  # it was given up, which nobody has kept
    says(story.gives("b", 3.0, 3, hosted=2, epoch=2), ACCEPT, 3.1)


@pytest.mark.parametrize(
    "tell",
    [
        good,
        of_a_new_leader,
        acknowledged_behind_the_start,
        released_by_what_was_meant_of_the_hold_before,
        accepted_too_late_for_the_last_time,
    ],
)
def test_nothing_is_wrong(tell: Callable[[Story], None]) -> None:
    story = Story()
    tell(story)
    assert not story.anomalies()


def two_holders(story: Story) -> None:
    story.gives("a", 1.0)
    story.gives("b", 1.5, 2)
    story.sessions["a"].confirmed_s = 1.6


def two_holders_after_a_release(story: Story) -> None:
    says(story.gives("a", 1.0), RELEASE, 1.2)
    story.gives("a", 1.4, 2)
    story.gives("b", 1.5, 3)
    story.sessions["a"].confirmed_s = 1.6


def two_holders_after_a_refusal(story: Story) -> None:
    late = story.gives("a", 1.0)
    story.gives("a", 2.1, 2)
    says(late, RELEASE, 2.3, Outcome.FAILED)
    story.gives("b", 2.5, 3)
    story.sessions["a"].confirmed_s = 2.6


def renewed(story: Story) -> None:
    story.gives("a", 1.0).renewals.append((1.8, 1.9))
    story.gives("b", 2.5, 2)
    story.sessions["a"].confirmed_s = 2.6


def former_holder(story: Story) -> None:
    former = story.gives("a", 1.0)
    story.gives("b", 2.1, 2)
    says(former, ACCEPT, 2.5)


def given_again(story: Story) -> None:
    says(story.gives("a", 1.0), ACCEPT, 1.2)
    story.gives("b", 1.5, 2, hosted=2, epoch=2)


def given_again_after_the_last_time(story: Story) -> None:
    says(story.gives("a", 1.0, 3), ACCEPT, 1.2)
    story.gives("b", 1.5, 3, hosted=2, epoch=2)


def given_again_after_a_late_word(story: Story) -> None:
    says(story.gives("a", 1.0, 2), ACCEPT, 2.1)
    story.gives("b", 3.0, 3, hosted=2, epoch=2)


def ended_twice(story: Story) -> None:
    says(story.gives("a", 1.0), ACCEPT, 1.2)
    says(story.gives("b", 1.25, 2, hosted=2, epoch=2), ACCEPT, 1.5)


def given_too_often(story: Story) -> None:
    story.gives("a", 1.0, 4)


def count_stays(story: Story) -> None:
    story.gives("a", 1.0)
    story.gives("a", 3.0)


def lost_count(story: Story) -> None:
    says(story.gives("a", 1.0), RELEASE, 1.2)
    story.gives("b", 2.0, 1, hosted=2, epoch=2)


def start_went_back(story: Story) -> None:
    story.sees_start(3, 1.0)
    story.sees_start(2, 2.0)


def passed_over(story: Story) -> None:
    says(story.gives("a", 1.0), ACCEPT, 1.2, Outcome.FAILED)
    story.history.is_drained = True


def nobodys(story: Story) -> None:
    story.gives("a", 1.0)
    story.history.deliveries.clear()


@pytest.mark.parametrize(
    ("name", "tell"),
    [
        ("two-holders", two_holders),
        ("two-holders", two_holders_after_a_release),
        ("two-holders", two_holders_after_a_refusal),
        ("two-holders", renewed),
        ("former-holder", former_holder),
        ("given-again", given_again),
        ("given-again", given_again_after_the_last_time),
        ("given-again", given_again_after_a_late_word),
        ("ended-twice", ended_twice),
        ("given-too-often", given_too_often),
        ("count-stays", count_stays),
        ("lost-count", lost_count),
        ("start-went-back", start_went_back),
        ("passed-over", passed_over),
        ("nobody's-record", nobodys),
    ],
)
def test_an_anomaly_is_found(name: str, tell: Callable[[Story], None]) -> None:
    story = Story()
    tell(story)
    assert story.anomalies() == {name}
