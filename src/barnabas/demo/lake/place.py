"""The bucket's part of the demo's directory: objects, keys, and the S3 server's settings.

Also the Java packages of that server, and what Spark needs for Iceberg in a bucket.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from typing import Final

from barnabas.base.config.properties import format_properties
from barnabas.base.private_files import write_private
from barnabas.demo.processes import ChildSpec
from barnabas.demo.workspace import Workspace
from barnabas.spark.packages import Package

BUCKET: Final = "bucket"
"""The part's name, and that of its directory."""
BUCKET_NAME: Final = "lake"
REGION: Final = "us-east-1"
ACCESS_KEY, SECRET_KEY = "access.key", "secret.key"
"""Files with one key each."""
_KEY_BYTES: Final = 24
_LOGGING: Final = """<configuration>
  <appender name="LOG" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss} %-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="LOG" /></root>
</configuration>
"""
SDK: Final = "2.25.0"
"""Of Amazon's SDK: Hadoop 3.4.1 is made for 2.24, one part of which is not published separately."""

S3_SERVER: Final = Package(
    "org.gaul:s3proxy:4.0.0",
    # It can also pass on to other stores; ours is a directory.
    (
        *("com.azure:*", "com.google.cloud:*", "com.github.openstack4j.core*:*"),
        *("org.apache.sshd:*", "software.amazon.awssdk:*"),
    ),
)
WITHOUT: Final = ("software.amazon.awssdk:bundle",)
"""All of Amazon's SDK in one file of 560 MB; what reaches a bucket has a thirtieth of that."""
SPARK: Final = (
    Package("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"),
    Package("org.apache.hadoop:hadoop-aws:3.4.1", WITHOUT),
    Package(f"software.amazon.awssdk:s3:{SDK}"),
    Package(f"software.amazon.awssdk:s3-transfer-manager:{SDK}"),
    Package(f"software.amazon.awssdk:sts:{SDK}"),
)


class Place:
    """Files of the demo's S3 server."""

    def __init__(self, workspace: Workspace, port: int) -> None:
        self._workspace = workspace
        self.port = port

    @property
    def url(self) -> str:
        """The server's address for clients."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def directory(self) -> str:
        """The directory of the keys."""
        return self._workspace.path(BUCKET)

    @property
    def objects(self) -> str:
        """The directory of the bucket's objects, a file each."""
        return self._workspace.path(BUCKET, "objects", BUCKET_NAME)

    def prepare(self) -> None:
        """Create the bucket and its keys if they do not exist, and write settings. Raises
        OSError."""
        os.makedirs(self.objects, exist_ok=True)
        for name in (ACCESS_KEY, SECRET_KEY):
            if not os.path.exists(self._path(name)):
                write_private(self._path(name), secrets.token_hex(_KEY_BYTES))
        write_private(self._path("logback.xml"), _LOGGING)
        settings = {
            "s3proxy.endpoint": self.url,
            "s3proxy.authorization": "aws-v4",
            "s3proxy.identity": self.key(ACCESS_KEY),
            "s3proxy.credential": self.key(SECRET_KEY),
            "s3proxy.jetty.max-threads": "20",
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": os.path.dirname(self.objects),
        }
        write_private(self._path("s3proxy.properties"), format_properties(settings))

    def spec(self) -> ChildSpec:
        """Return how to start the server."""
        command = [sys.executable, "-m", "barnabas.demo.lake.server"]
        return ChildSpec(
            BUCKET,
            [*command, "--directory", self.directory],
            grace_seconds=5.0,
            advice="See the log; without it the warehouse is Parquet: --warehouse parquet --fresh.",
        )

    def key(self, name: str) -> str:
        """Return one of the two keys. Raises OSError."""
        with open(self._path(name), encoding="utf-8") as file:
            return file.read()

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)


def java() -> str:
    """Return the Java that Spark takes too."""
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java") or "java"
