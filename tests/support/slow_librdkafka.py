"""librdkafka's producer with threads that can be held where they print what they do.

It calls the log callback in the thread that does something. A callback that waits is like a thread
that the machine lets wait there. confluent-kafka's own callback comes later and in another thread,
so this speaks to the library that it brings.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka

OFFSET_INVALID = -1001
COPY = 2
PATIENCE_S = 60
METADATA_MS = 2_000
"""Also spent where librdkafka asks a broker that is paused."""
_ERROR_SIZE = 512
_VOID = ctypes.c_void_p
_LOG = ctypes.CFUNCTYPE(None, _VOID, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)


class _Message(ctypes.Structure):
    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", _VOID),
        ("partition", ctypes.c_int32),
        ("payload", _VOID),
        ("size", ctypes.c_size_t),
        ("key", _VOID),
        ("key_size", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", _VOID),
    )


_DELIVERED = ctypes.CFUNCTYPE(None, _VOID, ctypes.POINTER(_Message), _VOID)


def _library() -> ctypes.CDLL:
    package = Path(confluent_kafka.__file__).parent
    (path,) = package.parent.glob("confluent_kafka.libs/librdkafka*")
    library = ctypes.CDLL(str(path))
    for name in ("conf_new", "new", "topic_new"):
        getattr(library, f"rd_kafka_{name}").restype = _VOID
    return library


class SlowProducer:
    """A context manager. `on_line(line)` is called in the thread that prints, and may wait."""

    def __init__(self, settings: dict[str, str], on_line: Callable[[str], None]) -> None:
        self.delivered: dict[str, tuple[int, int]] = {}
        """By value: error code and offset."""
        self._library = _library()
        self._error = ctypes.create_string_buffer(_ERROR_SIZE)
        self._log = _LOG(lambda _, __, kind, text: on_line(f"{kind.decode()} {text.decode()}"))
        self._on_delivered = _DELIVERED(self._delivered)
        conf = _VOID(self._call("conf_new"))
        for name, value in settings.items():
            failed = self._call(
                "conf_set", conf, name.encode(), value.encode(), self._error, _ERROR_SIZE
            )
            assert not failed, self._error.value
        self._call("conf_set_log_cb", conf, self._log)
        self._call("conf_set_dr_msg_cb", conf, self._on_delivered)
        self._client = _VOID(self._call("new", 0, conf, self._error, _ERROR_SIZE))
        assert self._client, self._error.value
        self._topics: dict[str, _VOID] = {}

    def __enter__(self) -> SlowProducer:
        return self

    def __exit__(self, *_: object) -> None:
        for topic in self._topics.values():
            self._call("topic_destroy", topic)
        self._call("destroy", self._client)

    def _call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._library, f"rd_kafka_{name}")(*arguments)

    def _topic(self, name: str) -> _VOID:
        if name not in self._topics:
            self._topics[name] = _VOID(self._call("topic_new", self._client, name.encode(), None))
        return self._topics[name]

    def _delivered(self, _: Any, message: Any, __: Any) -> None:
        one = message[0]
        value = ctypes.string_at(one.payload, one.size).decode()
        self.delivered[value] = (one.err, one.offset)

    def produce(self, topic: str, partition: int, value: str) -> None:
        """Hand a record over."""
        data = value.encode()
        size, none = ctypes.c_size_t(len(data)), ctypes.c_size_t(0)
        to = (self._topic(topic), ctypes.c_int32(partition), COPY)
        assert not self._call("produce", *to, data, size, None, none, None)

    def learn_leaders(self, topic: str) -> None:
        """Ask some broker who leads."""
        metadata = _VOID()
        found = ctypes.byref(metadata)
        if not self._call("metadata", self._client, 0, self._topic(topic), found, METADATA_MS):
            self._call("metadata_destroy", metadata)

    def poll_until(self, condition: Callable[[], bool], what: str) -> None:
        """Serve the callbacks of deliveries until `condition` holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            self._call("poll", self._client, 20)
            assert time.monotonic() < deadline, what
