"""WriteTxnMarkers (key 27), versions 1-2: KIP-98, 664, 1228.

A transaction coordinator has this node end transactions in partitions that it leads. So do
administrators who abort a transaction that hangs.
"""

from collections.abc import Awaitable

from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def handle_write_txn_markers(
    services: BrokerServices, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]:
    """Write markers; the answer comes when they are committed."""
    return services.marker_writer.write(request)
