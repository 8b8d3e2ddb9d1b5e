"""The sockets of the SQL server's listeners."""

import socket

from barnabas.pipeline.sql.server.config import Listener
from barnabas.pipeline.sql.server.listening import Room, bound


def test_an_answer_does_not_wait_for_the_client_to_acknowledge_the_one_before() -> None:
    with (
        bound(Listener("127.0.0.1", 0, is_tls=False), Room(1)) as listening,
        socket.create_connection(listening.getsockname()),
    ):
        listening.setblocking(True)
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
