"""The key of a control record, and the value of one that ends a transaction (KIP-98)."""

from barnabas.protocol.fields import int16, int32
from barnabas.protocol.schema import Message, message


@message(versions="0")
class ControlRecordTypeSchema(Message):
    type: int = int16("0+")


@message(versions="0")
class EndTxnMarker(Message):
    coordinator_epoch: int = int32("0+")
