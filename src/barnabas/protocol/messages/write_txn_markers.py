"""WriteTxnMarkers: a coordinator has partitions end a transaction (KIP-98)."""

from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class WritableTxnMarkerTopic(Struct):
    name: str = string("0+")
    partition_indexes: list[int] = array_of(int32, "0+")


@struct
class WritableTxnMarker(Struct):
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    transaction_result: bool = boolean("0+")
    topics: list[WritableTxnMarkerTopic] = array_of(WritableTxnMarkerTopic, "0+")
    coordinator_epoch: int = int32("0+")
    transaction_version: int = int8("2+", ignorable=True)


@message(versions="1-2", flexible="1+", api_key=27, listeners=("broker",))
class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = array_of(WritableTxnMarker, "0+")


@struct
class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class WritableTxnMarkerTopicResult(Struct):
    name: str = string("0+")
    partitions: list[WritableTxnMarkerPartitionResult] = array_of(
        WritableTxnMarkerPartitionResult, "0+"
    )


@struct
class WritableTxnMarkerResult(Struct):
    producer_id: int = int64("0+")
    topics: list[WritableTxnMarkerTopicResult] = array_of(WritableTxnMarkerTopicResult, "0+")


@message(versions="1-2", flexible="1+", api_key=27)
class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = array_of(WritableTxnMarkerResult, "0+")
