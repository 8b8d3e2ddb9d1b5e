"""Answers in gzip: for whom, how long, and what is kept of them."""

from __future__ import annotations

import gzip

import pytest

from barnabas.registry.http import answers
from barnabas.registry.http.answers import COMPRESSED_FROM, Compressor, takes_gzip
from barnabas.registry.http.app import RegistryApp
from support.registry_format import text
from support.registry_http import Reply, ask
from support.registry_service import MemoryService

ACCEPTS: list[tuple[bytes, bool]] = [
    (b"", False),
    (b"gzip", True),
    (b"GZIP", True),
    (b"gzip, deflate", True),
    (b"deflate, gzip;q=0.5", True),
    (b"gzip;q=0", False),
    (b"gzip; q=0.000", False),
    (b"gzip; q = 0.01", True),
    (b"*", True),
    (b"*;q=0", False),
    (b"gzip;q=0, *", False),
    (b"identity, *;q=0", False),
    (b"x-gzip", True),
    (b"br, zstd", False),
    (b"identity", False),
    (b",;=,", False),
]


@pytest.mark.parametrize(("header", "expected"), ACCEPTS)
def test_who_takes_gzip(header: bytes, expected: bool) -> None:
    assert takes_gzip(header) is expected
    assert takes_gzip(header) is expected


@pytest.fixture
async def app() -> RegistryApp:
    app = RegistryApp(MemoryService())
    for subject, size in (("small", 10), ("long", COMPRESSED_FROM), ("huge", 300_000)):
        body = {"schema": text("x" * size)}
        assert (await ask(app, "POST", f"/subjects/{subject}/versions", body)).status == 200
    return app


async def get(app: RegistryApp, target: str, encoding: bytes = b"gzip", **more: str) -> Reply:
    method = more.get("method", "GET")
    return await ask(app, method, target, headers={b"accept-encoding": encoding})


@pytest.mark.parametrize("subject", ["long", "huge"])
async def test_a_long_answer_is_compressed_for_who_asks(app: RegistryApp, subject: str) -> None:
    target = f"/subjects/{subject}/versions/1"
    plain = await get(app, target, b"identity")
    assert b"content-encoding" not in plain.headers
    for _ in range(2):
        packed = await get(app, target)
        assert packed.headers[b"content-encoding"] == b"gzip"
        assert packed.headers[b"content-length"] == b"%d" % len(packed.body)
        assert b"Accept-Encoding" in packed.headers[b"vary"]
        assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 2


async def test_a_short_answer_and_a_head_are_not(app: RegistryApp) -> None:
    assert b"content-encoding" not in (await get(app, "/subjects/small/versions/1")).headers
    assert b"content-encoding" not in (await get(app, "/subjects/none/versions/1")).headers
    head = await get(app, "/subjects/long/versions/1", method="HEAD")
    assert (head.body, b"content-encoding" in head.headers) == (b"", False)
    plain = await get(app, "/subjects/long/versions/1", b"")
    assert head.headers[b"content-length"] == b"%d" % len(plain.body)


async def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "KEPT_BYTES_MAX", 5000)
    compressor = Compressor()
    bodies = [b"%04d" % number * 500 for number in range(10)]
    for body in bodies:
        assert gzip.decompress(await compressor.gzip(body)) == body
    assert list(compressor._kept) == bodies[-2:]
    assert compressor._bytes == sum(len(k) + len(v) for k, v in compressor._kept.items())
    long = b"x" * (answers.KEPT_SIZE_MAX + 1)
    assert gzip.decompress(await compressor.gzip(long)) == long
    assert long not in compressor._kept
