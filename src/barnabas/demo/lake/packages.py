"""Java packages of the lake: the S3 server, and what Spark needs for Iceberg in a bucket."""

from __future__ import annotations

import os
import shutil
from typing import Final

from barnabas.spark.packages import Package

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


def java() -> str:
    """Return the Java that Spark takes too."""
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java") or "java"
