"""BrokerHeartbeat: a broker proves to be alive, and asks to be unfenced or to shut down.

Source: KIP-631.
"""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int16, int32, int64, uuid
from barnabas.protocol.schema import Message, message


@message(versions="0-2", flexible="0+", api_key=63, listeners=("controller",))
class BrokerHeartbeatRequest(Message):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    current_metadata_offset: int = int64("0+")
    want_fence: bool = boolean("0+")
    want_shut_down: bool = boolean("0+")
    offline_log_dirs: list[Uuid] = array_of(uuid, "1+", tagged="1+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = array_of(
        uuid, "2+", nullable="2+", default=None, tagged="2+", tag=1
    )


@message(versions="0-2", flexible="0+", api_key=63)
class BrokerHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    is_caught_up: bool = boolean("0+")
    is_fenced: bool = boolean("0+", default=True)
    should_shut_down: bool = boolean("0+")
