"""Checks of `barnabas doctor` on this machine: configuration, disks, limits, clock."""

import ctypes
import importlib.metadata
import os
import platform
import resource
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

from barnabas.base.errors import ConfigError
from barnabas.base.tls.x509 import Certificate
from barnabas.cli.doctor.findings import Finding, fault, note, ok
from barnabas.cli.node_options import load_node_config
from barnabas.cli.output import counted
from barnabas.cli.units import format_bytes
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import listening_tls

FREE_MIN_BYTES = 1 << 30
FREE_MIN_SHARE = 0.05
FILES_ADVISED = 65536
NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs"})
TEMPORARY = ("/tmp/", "/private/tmp/", "/dev/shm/")
"""Where Kafka's default of log.dirs is: /tmp/kafka-logs."""
PACKAGES: tuple[str, ...] = ("confluent-kafka", "uvloop", "fastcrc", "cramjam")
if sys.version_info < (3, 14):
    PACKAGES += ("backports.zstd",)
OPTIONAL_PACKAGES = frozenset({"uvloop"})
CLOCK_UNSYNCHRONISED = 0x0040
"""STA_UNSYNC of adjtimex(2)."""


def check_machine() -> Iterator[Finding]:
    """Versions, limits and the clock of this machine."""
    yield ok("python", f"{platform.python_version()} on {platform.system()} {platform.release()}")
    yield from _packages()
    yield _open_files()
    yield _clock()


def check_properties(path: str) -> Iterator[Finding]:
    """The node that a file describes. Raises CliError where the file cannot be read."""
    try:
        config = load_node_config(path, ())
    except ConfigError as error:
        yield fault("configuration", f"{path}: {error}", "barnabas start would refuse it too")
        return
    yield from check_node(config)


def check_node(config: NodeConfig) -> Iterator[Finding]:
    """A node's configuration and directories."""
    for warning in config.warnings:
        yield note("configuration", warning)
    if not config.warnings:
        yield ok(
            "configuration", f"node {config.node_id}: {', '.join(sorted(config.process_roles))}"
        )
    for directory in config.log_dirs:
        yield from check_directory(directory)
    for listener in config.listeners:
        if listener.name not in config.controller_listener_names:
            yield _port(listener.host, listener.port, str(listener))
    yield from check_certificates(config)
    if config.get_int("log.flush.interval.messages") != 1:
        yield note(
            "durability",
            "records are acknowledged before they are on disk (Kafka's default)",
            "on a single node, log.flush.interval.messages=1 survives a power cut",
        )


def check_directory(directory: str) -> Iterator[Finding]:
    """Formatted, writable, with room left."""
    if not os.path.isdir(directory):
        yield fault("directory", f"{directory} does not exist", "run barnabas storage format")
        return
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        yield fault("directory", f"{directory} is not writable by this user", "change its owner")
    if not os.path.exists(os.path.join(directory, "meta.properties")):
        yield fault("directory", f"{directory} is not formatted", "run barnabas storage format")
    if any(os.path.realpath(directory).startswith(place) for place in TEMPORARY):
        yield note(
            "directory",
            f"{directory} may be emptied when the machine restarts",
            "set log.dirs to a directory that stays",
        )
    kind = file_system_of(directory)
    if kind in NETWORK_FILE_SYSTEMS:
        yield note("directory", f"{directory} is on {kind}", "logs belong on a local disk")
    yield _space(directory)


def _space(directory: str) -> Finding:
    stat = os.statvfs(directory)
    free, total = stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize
    text = f"{format_bytes(free)} of {format_bytes(total)} free for {directory}"
    if free < FREE_MIN_BYTES or free < total * FREE_MIN_SHARE:
        return fault("disk space", text, "free some, or lower log.retention.bytes or .ms")
    return ok("disk space", text)


def file_system_of(directory: str) -> str:
    """The kind of file system, or an empty text where the system does not tell."""
    try:
        with open("/proc/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:
        return ""
    path = os.path.realpath(directory)
    fitting = [
        (len(mount), kind)
        for mount, kind in mounts
        if path == mount or path.startswith(mount.rstrip("/") + "/")
    ]
    return max(fitting)[1] if fitting else ""


def _packages() -> Iterator[Finding]:
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    yield ok("packages", ", ".join(found))
    for name in missing:
        if name in OPTIONAL_PACKAGES:
            yield note("packages", f"{name} is not installed: slower", f"pip install {name}")
        else:
            yield fault("packages", f"{name} is not installed", f"pip install {name}")


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A node raises the soft limit when it starts.
    if hard == resource.RLIM_INFINITY or hard >= FILES_ADVISED:
        return ok("open files", f"up to {hard}")
    return note(
        "open files",
        f"up to {hard} (soft limit {soft}); each partition and connection needs some",
        f"ulimit -n {FILES_ADVISED}, or LimitNOFILE= in the service's unit",
    )


def _clock() -> Finding:
    if not sys.platform.startswith("linux"):
        return note("clock", f"not checked on {sys.platform}")
    buffer = ctypes.create_string_buffer(256)  # struct timex with modes = 0: only read
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.adjtimex(buffer) < 0:
        return note("clock", f"not checked: {os.strerror(ctypes.get_errno())}")
    status = int.from_bytes(buffer.raw[40:44], sys.byteorder)
    if status & CLOCK_UNSYNCHRONISED:
        return note(
            "clock",
            "the kernel does not report it as synchronised",
            "run an NTP client: retention and look-ups by time depend on the clock",
        )
    return ok("clock", "synchronised")


def _port(host: str, port: int, listener: str) -> Finding:
    if port == 0:
        return note("port", f"{listener} takes any free port", "give clients a fixed one")
    family = socket.AF_INET6 if ":" in host or not host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        return note("port", f"{listener}: {error.strerror}", "expected if the node already runs")
    return ok("port", f"{listener} is free")


# Checks of `barnabas doctor` on the certificates of a node's listeners.


ENDS_SOON_DAYS = 30
RENEW = "renew it: new connections use the new file without a restart"


def check_certificates(config: NodeConfig, now: datetime | None = None) -> Iterator[Finding]:
    """Each listener that speaks TLS: its certificate can be used, lasts, and bears its address."""
    now = now or datetime.now(UTC)
    advertised = {listener.name: listener.host for listener in config.all_advertised_listeners}
    for listener in config.listeners:
        try:
            tls = listening_tls(config, listener)
        except ConfigError as error:
            yield fault("certificate", f"{listener}: {error}")
            continue
        if tls is not None and tls.certificate is not None:
            yield _check(listener.name, tls.certificate, advertised.get(listener.name, ""), now)


def _check(name: str, certificate: Certificate, host: str, now: datetime) -> Finding:
    days = (certificate.not_after - now).days
    until = f"{certificate.not_after:%Y-%m-%d}"
    if now < certificate.not_before:
        begins = f"{certificate.not_before:%Y-%m-%d}"
        return fault("certificate", f"{name}: it holds only from {begins}", "check the clock")
    if now >= certificate.not_after:
        return fault("certificate", f"{name}: it expired on {until}", RENEW)
    if host and not certificate.is_for(host):
        names = ", ".join(sorted(certificate.alternative_names)) or "no host at all"
        return fault(
            "certificate",
            f"{name}: clients connect to {host}, but the certificate is for {names}",
            f"issue one with {host} among its alternative names, or advertise a name that it has",
        )
    if days < ENDS_SOON_DAYS:
        span = f"in {counted(days, 'day')}" if days else "within a day"
        return note("certificate", f"{name}: it ends {span}, on {until}", RENEW)
    return ok("certificate", f"{name}: {certificate.subject}, until {until}")
