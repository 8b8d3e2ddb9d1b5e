"""A principal as a broker passes it on inside an envelope (KIP-590)."""

from barnabas.protocol.fields import boolean, string
from barnabas.protocol.schema import Message, message


@message(versions="0", flexible="0+")
class DefaultPrincipalData(Message):
    type: str = string("0+")
    name: str = string("0+")
    token_authenticated: bool = boolean("0+")
