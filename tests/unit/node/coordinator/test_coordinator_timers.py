"""Timers as data."""

from barnabas.node.coordinator.timers import TimerQueue


def drain(queue: TimerQueue[str], now_ms: int) -> list[str]:
    due = []
    while (key := queue.pop_due(now_ms)) is not None:
        due.append(key)
    return due


def test_due_in_order_and_once():
    queue: TimerQueue[str] = TimerQueue()
    for key, deadline in (("c", 30), ("a", 10), ("b", 20)):
        queue.schedule(key, deadline)
    assert queue.next_deadline_ms() == 10
    assert drain(queue, 9) == []
    assert drain(queue, 20) == ["a", "b"]
    assert drain(queue, 20) == []
    assert len(queue) == 1


def test_moved_later_is_not_due_at_the_former_time():
    queue: TimerQueue[str] = TimerQueue()
    queue.schedule("a", 10)
    queue.schedule("a", 50)
    assert drain(queue, 49) == []
    assert queue.next_deadline_ms() == 50
    assert drain(queue, 50) == ["a"]


def test_moved_earlier_is_due_earlier_and_only_then():
    queue: TimerQueue[str] = TimerQueue()
    queue.schedule("a", 50)
    queue.schedule("a", 10)
    assert drain(queue, 10) == ["a"]
    assert drain(queue, 100) == []


def test_cancelled_is_never_due():
    queue: TimerQueue[str] = TimerQueue()
    queue.schedule("a", 10)
    queue.cancel("a")
    queue.cancel("never set")
    assert queue.next_deadline_ms() is None
    assert "a" not in queue
    queue.schedule("a", 20)
    assert queue.deadline_ms("a") == 20
    assert drain(queue, 15) == []
    assert drain(queue, 20) == ["a"]


def test_the_heap_stays_small_while_keys_come_and_go():
    queue: TimerQueue[int] = TimerQueue()
    for key in range(10_000):
        queue.schedule(key, key + 1_000_000)
        queue.cancel(key)
    assert len(queue._heap) < 200
    queue.schedule(1, 5)
    for _ in range(10_000):
        queue.schedule(1, (queue.deadline_ms(1) or 0) + 1)
    assert len(queue._heap) < 200
