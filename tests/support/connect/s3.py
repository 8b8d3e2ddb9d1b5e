"""S3 servers of the tests' own, as processes on ephemeral ports.

Two kinds. `moto` (from PyPI) answers most of S3 and checks no keys. `versitygw` (from the Go module
proxy, built once into `.cache`, about two minutes) keeps objects in a directory, checks signatures
and holds conditional writes to what they say; it is the stricter judge. A server ends with the
block that started it, and with the tests' process if that is killed.

    with s3_server() as server:
        server.make_bucket("events")
        settings = {**server.settings("events"), ...}
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import boto3
import pytest
from botocore.config import Config

from barnabas.cli.dev.child_process import end_with
from support.foreign_programs import BUILD_TIMEOUT_S, CACHE
from support.node_process import wait_until
from support.ports import HOST, free_port

Kind = Literal["moto", "versitygw"]

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
ACCESS_KEY = "barnabas-tests"
SECRET_KEY = "a-secret-of-tests"
REGION = "us-east-1"
STOP_TIMEOUT_S = 10.0


class S3Server:
    """One server; objects of `versitygw` survive `stop` and `start`, those of `moto` do not."""

    def __init__(self, kind: Kind, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        self.port = free_port()
        self.endpoint = f"http://{HOST}:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Any = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with(os.getpid()),
            )
        wait_until(self._listens, "the S3 server's start", shown=self._log)

    def stop(self) -> None:
        """End it at once, as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(STOP_TIMEOUT_S)

    def close(self) -> None:
        """End it for good."""
        if self._client is not None:
            self._client.close()
        self.stop()

    @property
    def client(self) -> Any:
        """A client of boto3 with the right keys."""
        if self._client is None:
            self._client = boto3.session.Session().client(
                "s3",
                endpoint_url=self.endpoint,
                region_name=REGION,
                aws_access_key_id=ACCESS_KEY,
                aws_secret_access_key=SECRET_KEY,
                config=Config(s3={"addressing_style": "path"}),
            )
        return self._client

    def settings(self, bucket: str) -> dict[str, str]:
        """Return what connectors of S3 need to find a bucket here."""
        return {
            "s3.bucket.name": bucket,
            "s3.region": REGION,
            "store.url": self.endpoint,
            "aws.access.key.id": ACCESS_KEY,
            "aws.secret.access.key": SECRET_KEY,
        }

    def hadoop_settings(self) -> dict[str, str]:
        """Return what Hadoop needs for `s3a://bucket/…` here."""
        prefix = "fs.s3a"
        return {
            f"{prefix}.endpoint": self.endpoint,
            f"{prefix}.endpoint.region": REGION,
            f"{prefix}.access.key": ACCESS_KEY,
            f"{prefix}.secret.key": SECRET_KEY,
            f"{prefix}.path.style.access": "true",
            f"{prefix}.connection.ssl.enabled": "false",
        }

    def make_bucket(self, bucket: str) -> None:
        """Make a bucket."""
        self.client.create_bucket(Bucket=bucket)

    def drop_bucket(self, bucket: str) -> None:
        """Remove a bucket with all that is in it."""
        for key in self.keys(bucket):
            self.client.delete_object(Bucket=bucket, Key=key)
        self.client.delete_bucket(Bucket=bucket)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """The names of the objects, sorted."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return sorted(item["Key"] for page in pages for item in page.get("Contents", ()))

    def read(self, bucket: str, key: str) -> bytes:
        """An object's bytes."""
        with self.client.get_object(Bucket=bucket, Key=key)["Body"] as body:
            return bytes(body.read())

    def write(self, bucket: str, key: str, data: bytes) -> None:
        """Put an object."""
        self.client.put_object(Bucket=bucket, Key=key, Body=data)

    def open_uploads(self, bucket: str) -> list[str]:
        """The names of multipart uploads that are neither completed nor aborted."""
        found = self.client.list_multipart_uploads(Bucket=bucket)
        return sorted(upload["Key"] for upload in found.get("Uploads", ()))

    def _command(self) -> list[str]:
        if self.kind == "moto":
            program = str(Path(sys.executable).with_name("moto_server"))
            return [program, "-H", HOST, "-p", str(self.port)]
        objects = self.directory / "objects"
        objects.mkdir(exist_ok=True)
        # Metadata of objects is in files beside them: some file systems lack extended attributes.
        sidecar = self.directory / "sidecar"
        sidecar.mkdir(exist_ok=True)
        keys = ["--access", ACCESS_KEY, "--secret", SECRET_KEY, "--region", REGION]
        where = ["--port", f"{HOST}:{self.port}", "--quiet"]
        return [
            str(versitygw_program()),
            *keys,
            *where,
            *("posix", "--sidecar", str(sidecar), str(objects)),
        ]

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log()
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def _log(self) -> str:
        return (self.directory / "server.log").read_text(errors="replace")[-2000:]


@contextmanager
def s3_server(kind: Kind | None = None) -> Iterator[S3Server]:
    """Run a server; without a kind the stricter one if it was built before."""
    with tempfile.TemporaryDirectory(prefix="barnabas-test-s3-") as directory:
        chosen: Kind = kind or ("versitygw" if _versitygw_path().exists() else "moto")
        server = S3Server(chosen, Path(directory))
        try:
            server.start()
            yield server
        finally:
            server.close()


def versitygw_program() -> Path:
    """Build the gateway if it was not built before; skips the test where it cannot be."""
    path = _versitygw_path()
    if not path.exists():
        if shutil.which("go") is None:
            pytest.skip("needs go, to build versitygw")
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=CACHE) as folder:
            made = subprocess.run(
                ["go", "install", VERSITYGW],
                env={**os.environ, "GOBIN": folder, "CGO_ENABLED": "0"},
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT_S,
            )
            if made.returncode != 0:
                pytest.skip(f"go install {VERSITYGW} failed: {made.stderr[-2000:]}")
            path.parent.mkdir(exist_ok=True)
            (Path(folder) / path.name).replace(path)
    return path


def _versitygw_path() -> Path:
    return CACHE / f"versitygw-{VERSITYGW.rpartition('@')[2]}" / "versitygw"
