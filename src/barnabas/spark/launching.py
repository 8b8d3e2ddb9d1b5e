"""Starts Spark's JVM faster with results of earlier starts, which are kept in one directory.

    spark-submit             here
    a JVM that prints the    the command, kept from the first start
      command
    Ivy, which resolves      the jars that it found, kept, on the class path
      packages
    classes, each read and   an archive of the classes (class-data sharing), written once, in the
      verified                 background, after a start that had none
    our Java code, compiled    its classes, kept (java_code.py)

This applies to local masters whose Spark has no `spark-defaults.conf` or `spark-env.sh`.
Spark-submit starts the others, and replaces a start that fails here.
"""

from __future__ import annotations

import atexit
import contextlib
import glob
import hashlib
import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyspark

from barnabas.base.private_files import write_private

_log = logging.getLogger(__name__)
_MAIN: Final = "org.apache.spark.deploy.SparkSubmit"
_PRINTS_COMMAND: Final = "org.apache.spark.launcher.Main"
_CLASS_PATH: Final = "-cp"
_QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""The JVM warns of an archive that it does not take."""
_LAUNCHER_SECONDS: Final = 60.0
_ARCHIVE_AFTER_SECONDS: Final = 30.0
_GROWTH_BYTES_MAX: Final = 10_000
"""Of the list, in that time, once what a start loads is in it: names of 200 classes."""
_LOOKS_MAX: Final = 20
_LEFT_OVER_SECONDS: Final = 1_200.0
_WRITES_ARCHIVES: Final = "BARNABAS_SPARK_ARCHIVES"
"""A variable of the environment; 0 where too few starts would follow: on machines used once."""
_UNUSED_SECONDS: Final = 30 * 86_400.0
"""An archive has 150 MB."""
_OWN_CONFIGURATION: Final = (
    *("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_HOME"),
    *("SPARK_SUBMIT_OPTS", "SPARK_DRIVER_MEMORY", "SPARK_MEM", "SPARK_PREPEND_CLASSES"),
    *("SPARK_LAUNCHER_OPTS", "SPARK_EXTRA_CLASSPATH", "PYSPARK_SUBMIT_ARGS"),
    *("JAVA_TOOL_OPTIONS", "SPARK_TESTING"),
)
"""Environment variables that make spark-submit start the JVM."""
_RESOLVES: Final = (
    *("spark.jars", "spark.jars.excludes", "spark.jars.repositories", "spark.jars.ivySettings"),
    *("spark.driver.extraClassPath", "spark.driver.extraLibraryPath"),
    "spark.driver.defaultJavaOptions",
)
"""Settings that do the same."""


@dataclass(frozen=True)
class Launch:
    """A JVM that is started without spark-submit: its command, without the file of properties."""

    command: tuple[str, ...]
    jars: tuple[str, ...]
    directory: str
    purpose: str = ""
    """Starts of one purpose share an archive: they load the same classes."""

    @property
    def class_path(self) -> str:
        """The class path, with the jars of packages last, as Spark's class loader has them."""
        own = self.command[self.command.index(_CLASS_PATH) + 1]
        return os.pathsep.join((own, *self.jars))

    def arguments(self) -> list[str]:
        """All before the main class."""
        at = self.command.index(_CLASS_PATH)
        return [*self.command[: at + 1], self.class_path, *self.command[at + 2 :]]

    @property
    def archive(self) -> str:
        """The path of the archive of classes, which may not exist."""
        java, *options = self.arguments()
        # Properties (-D) are not in it. The JVM silently rejects an archive of other jars.
        counted = [option for option in options if not option.startswith("-D")]
        stamps = [_stamp(path) for path in (java, *_jars(self.class_path))]
        told = hashlib.sha256(repr((java, stamps, counted, self.purpose)).encode())
        return os.path.join(self.directory, f"classes-{told.hexdigest()[:24]}.jsa")

    @property
    def compiled(self) -> str:
        """The prefix of the paths of files with compiled Java code, which links to these jars."""
        return self.archive.removesuffix(".jsa")

    @property
    def class_list(self) -> str:
        """The path to which the JVM writes the names of its classes while it has no archive."""
        return f"{self.archive.removesuffix('.jsa')}-{os.getpid()}.txt"


def launch_of(
    settings: Mapping[str, str],
    packages: Sequence[str],
    directory: str,
    spark_home: str,
    purpose: str = "",
) -> Launch | None:
    """How to start without spark-submit, if that is possible and `packages` were resolved before.

    `directory`: where packages are kept, and beside them what is learned. `purpose`: see `Launch`.
    """
    if not _is_plain(settings, spark_home):
        return None
    learned = _place(directory)
    jars = resolved(packages, directory)
    if jars is None:
        return None
    try:
        os.makedirs(learned, mode=0o700, exist_ok=True)
        command = _command(settings, learned, spark_home)
        return Launch(command, tuple(jars), learned, purpose)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        _log.info("Spark is started by spark-submit: %s", error)
        return None


def _is_plain(settings: Mapping[str, str], spark_home: str) -> bool:
    return (
        re.match(r"local(\[|$)", settings.get("spark.master", "")) is not None
        and os.name == "posix"
        and not any(os.environ.get(name) for name in _OWN_CONFIGURATION)
        and not any(settings.get(name) for name in _RESOLVES)
        and not os.path.exists(os.path.join(spark_home, "conf"))
    )


def _place(directory: str) -> str:
    return os.path.join(directory, "starts")


# --- packages ------------------------------------------------------------------------------------


def _record(packages: Sequence[str], directory: str) -> str:
    told = hashlib.sha256(repr((pyspark.__version__, sorted(packages))).encode()).hexdigest()
    return os.path.join(_place(directory), f"packages-{told[:24]}.json")


def resolved(packages: Sequence[str], directory: str) -> list[str] | None:
    """The jars of packages that Spark does not have itself; None if that is not known yet."""
    if not packages:
        return []
    try:
        with open(_record(packages, directory), encoding="utf-8") as file:
            names = json.load(file)
    except (OSError, ValueError):
        return None
    paths = [os.path.join(directory, "jars", name) for name in names]
    return paths if all(map(os.path.exists, paths)) else None


def note_resolved(packages: Sequence[str], directory: str, jars: str, spark_home: str) -> None:
    """Keep what Ivy found for packages: `jars` is Spark's setting of that name."""
    jars_directory = os.path.join(directory, "jars")
    names = [os.path.basename(path) for path in jars.split(",") if path]
    if not names or not all(os.path.exists(os.path.join(jars_directory, name)) for name in names):
        return
    own = set(os.listdir(os.path.join(spark_home, "jars")))
    # Ivy puts the group before the name that the jar has elsewhere.
    added = [name for name in names if name.partition("_")[2] not in own]
    with contextlib.suppress(OSError):
        os.makedirs(_place(directory), mode=0o700, exist_ok=True)
        write_private(_record(packages, directory), json.dumps(added))


# --- the command ---------------------------------------------------------------------------------


def _command(settings: Mapping[str, str], directory: str, spark_home: str) -> tuple[str, ...]:
    """All before the main class, as Spark's launcher prints it, now or at an earlier start."""
    java = _java()
    driver = {key: settings[key] for key in sorted(settings) if key.startswith("spark.driver.")}
    told = repr((pyspark.__version__, spark_home, java, _stamp(java), driver))
    path = os.path.join(directory, f"command-{hashlib.sha256(told.encode()).hexdigest()[:24]}.json")
    try:
        with open(path, encoding="utf-8") as file:
            return tuple(json.load(file))
    except (OSError, ValueError):
        command = _printed(java, driver, spark_home)
    write_private(path, json.dumps(command))
    return command


def _printed(java: str, driver: Mapping[str, str], spark_home: str) -> tuple[str, ...]:
    """Raises ValueError where the launcher prints something else."""
    options = [word for name, value in driver.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [
            *(java, "-Xmx128m", "-XX:TieredStopAtLevel=1", _CLASS_PATH, f"{spark_home}/jars/*"),
            *(_PRINTS_COMMAND, _MAIN, *options, "pyspark-shell"),
        ],
        env={**os.environ, "SPARK_HOME": spark_home, "SPARK_SCALA_VERSION": "2.13"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LAUNCHER_SECONDS,
        check=True,
    )
    words = [word for word in done.stdout.lstrip("\0\n").split("\0") if word]
    if _MAIN not in words or _CLASS_PATH not in words or not os.path.isabs(words[0]):
        raise ValueError("Spark's launcher prints no command")
    return (java, *words[1 : words.index(_MAIN)])


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        raise ValueError("there is no Java")
    return os.path.realpath(java)


def _jars(class_path: str) -> list[str]:
    """The jars of a class path, with those of its wildcards (`jars/*`)."""
    found: list[str] = []
    for entry in class_path.split(os.pathsep):
        if os.path.basename(entry) == "*":
            found += sorted(glob.glob(f"{glob.escape(os.path.dirname(entry))}/*.jar"))
        elif os.path.isfile(entry):
            found.append(entry)
    return found


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


# --- the start -----------------------------------------------------------------------------------


@contextlib.contextmanager
def in_place_of_submit(launch: Launch, spark_home: str) -> Iterator[None]:
    """Have PySpark run this command where it would run spark-submit."""
    try:
        os.utime(launch.archive)  # it is used
        sharing = [f"-XX:SharedArchiveFile={launch.archive}", "-Xshare:auto"]
    except OSError:
        sharing = []
        if _writes_archives():
            sharing = [f"-XX:DumpLoadedClassList={launch.class_list}"]
    _sweep(launch.directory)
    java, *options = launch.arguments()
    words = [java, *sharing, *_QUIET, *options, _MAIN]
    with tempfile.TemporaryDirectory(prefix="barnabas-spark-") as directory:
        os.mkdir(os.path.join(directory, "bin"))
        script = os.path.join(directory, "bin", "spark-submit")
        lines = (
            "#!/bin/sh",
            f"SPARK_HOME={shlex.quote(spark_home)}; SPARK_ENV_LOADED=1",
            "export SPARK_HOME SPARK_ENV_LOADED",
            f'exec {shlex.join(words)} "$@"',
        )
        write_private(script, "\n".join(lines) + "\n")
        os.chmod(script, 0o700)
        os.environ["SPARK_HOME"] = directory
        try:
            yield
        finally:
            del os.environ["SPARK_HOME"]


# --- the archive of classes ----------------------------------------------------------------------


def archive_later(launch: Launch) -> None:
    """Write the archive for later starts, if it does not exist, once the JVM loads few classes.

    A busy machine may need minutes to what another one has done in half of one.
    """
    if os.path.exists(launch.archive) or not _writes_archives():
        return
    _look_later(launch, 0, _LOOKS_MAX)
    atexit.register(_forget_list, launch)


def _writes_archives() -> bool:
    return os.environ.get(_WRITES_ARCHIVES) != "0"


def _look_later(launch: Launch, size_bytes: int, looks: int) -> None:
    """Look at the list of classes after half a minute. `size_bytes`: what it had before."""
    timer = threading.Timer(_ARCHIVE_AFTER_SECONDS, _look, (launch, size_bytes, looks))
    timer.daemon = True
    timer.start()


def _look(launch: Launch, before_bytes: int, looks: int) -> None:
    try:
        size_bytes = os.path.getsize(launch.class_list)
    except OSError:
        return  # the session has ended, and its list is deleted
    if looks > 1 and size_bytes - before_bytes > _GROWTH_BYTES_MAX:
        _look_later(launch, size_bytes, looks - 1)
    else:
        write_archive(launch)


def _forget_list(launch: Launch) -> None:
    with contextlib.suppress(OSError):
        os.unlink(launch.class_list)


def write_archive(launch: Launch) -> bool:
    """Write the archive from the list of classes of this process's JVM, as a separate process.

    Returns whether there is one. A failure costs later starts nothing but time. The process goes
    on when this one ends.
    """
    partial, whole = f"{launch.archive}.partial", f"{launch.class_list}.whole"
    try:
        classes = _whole_lines(launch.class_list)
        if os.path.exists(launch.archive):
            return True
        # One process at a time: others find this file.
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        write_private(whole, classes)
        java, *options = launch.arguments()
        dump = [
            *("nice", "-n", "19", java, "-Xshare:dump"),
            *(f"-XX:SharedClassListFile={whole}", f"-XX:SharedArchiveFile={partial}"),
            *(*_QUIET, *options),
        ]
        moved = shlex.join(("mv", "-f", partial, launch.archive))
        tidied = shlex.join(("rm", "-f", partial, whole, launch.class_list))
        subprocess.run(
            ["sh", "-c", f"{shlex.join(dump)} && {moved}; {tidied}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )
    except OSError as error:
        _log.info("no archive of Spark's classes: %s", error)
    return os.path.exists(launch.archive)


def _sweep(directory: str) -> None:
    """Delete archives and code that nothing uses, and what ended processes have left."""
    now = time.time()
    kept_s = {".txt": _LEFT_OVER_SECONDS, ".whole": _LEFT_OVER_SECONDS}
    kept_s |= {".partial": _LEFT_OVER_SECONDS, ".jsa": _UNUSED_SECONDS, ".code": _UNUSED_SECONDS}
    with contextlib.suppress(OSError):
        for entry in os.scandir(directory):
            seconds = kept_s.get(os.path.splitext(entry.name)[1])
            with contextlib.suppress(OSError):
                if seconds is not None and entry.stat().st_mtime < now - seconds:
                    os.unlink(entry.path)


def _whole_lines(path: str) -> str:
    """The list as far as the JVM has written it."""
    with open(path, encoding="utf-8") as file:
        return file.read().rpartition("\n")[0] + "\n"
