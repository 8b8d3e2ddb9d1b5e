"""A local file system for checkpoints and state that starts no process for each file.

Without Hadoop's native library, which PySpark lacks, Hadoop's local file systems run `chmod` for
each file that they create and `readlink` for each that they rename: some fifteen processes and a
tenth of a second for a micro-batch with state. So the JVM gets a local file system that calls the
operating system itself, put into Hadoop's cache of file systems. It also writes no checksums, which
are a second file beside each.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

from barnabas.spark.java_code import HAS_MOVED_CLASSES, JavaCode

CHECKPOINT_MANAGER: Final = (
    "org.apache.spark.sql.execution.streaming."
    f"{'checkpointing.' if HAS_MOVED_CLASSES else ''}FileSystemBasedCheckpointFileManager"
)
"""Writes checkpoints through the file system that `use_plain_files` sets."""

_PLAIN_FILES: Final = JavaCode(
    "PlainLocalFiles",
    """
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

public class PlainLocalFiles extends org.apache.hadoop.fs.RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
        if (permission.getStickyBit()) {
            super.setPermission(path, permission);
        } else {
            Files.setPosixFilePermissions(
                pathToFile(path).toPath(),
                PosixFilePermissions.fromString(permission.toString()));
        }
    }
}
""",
)


def use_plain_files(session: SparkSession) -> None:
    """Have the session's JVM use it for `file:` from now on."""
    jvm: Any = session.sparkContext._jvm
    gateway: Any = session.sparkContext._gateway
    files = jvm.org.apache.hadoop.fs.LocalFileSystem(_PLAIN_FILES.object_in(session))
    place = jvm.java.net.URI.create("file:///")
    conf = session.sparkContext._jsc.hadoopConfiguration()
    files.initialize(place, conf)
    files.setWriteChecksum(False)
    files.setVerifyChecksum(False)
    _keep(jvm, gateway, (place, conf, files))


def _keep(jvm: Any, gateway: Any, arguments: tuple[Any, Any, Any]) -> None:
    """FileSystem.addFileSystemForTesting: there is no public way."""
    names = (
        "java.net.URI",
        "org.apache.hadoop.conf.Configuration",
        "org.apache.hadoop.fs.FileSystem",
    )
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    types = gateway.new_array(jvm.java.lang.Class, len(names))
    values = gateway.new_array(jvm.Object, len(names))
    for at, (name, value) in enumerate(zip(names, arguments, strict=True)):
        types[at] = loader.loadClass(name)
        values[at] = value
    add = loader.loadClass(names[-1]).getDeclaredMethod("addFileSystemForTesting", types)
    add.setAccessible(True)
    add.invoke(None, values)
