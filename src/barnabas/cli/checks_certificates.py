"""Checks of `barnabas doctor` on the certificates of a node's listeners."""

from collections.abc import Iterator
from datetime import UTC, datetime

from barnabas.base.config.errors import ConfigError
from barnabas.base.tls.x509 import Certificate
from barnabas.cli.findings import Finding, fault, note, ok
from barnabas.cli.output import counted
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import listening_tls

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
