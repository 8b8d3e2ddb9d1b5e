"""Look for known vulnerabilities in what is installed: `make audit`, a part of `make check`.

The jars that sessions, connectors and the demo fetch (`spark/jars.txt`, `more_jars.txt`) are
compared with `tools/jar_advisories.txt`, which needs no network: advisories are added there by
hand.

pip-audit checks Python's packages, with advisories that it asks PyPI for. Where it is not
installed, or no network leads there, that is said in one line and nothing fails: a machine without
a network can still check the code. A known vulnerability fails the check.
"""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

SECONDS_MAX = 120
ROOT = Path(__file__).parents[1]
JARS = tuple(ROOT / "src" / "barnabas" / "spark" / name for name in ("jars.txt", "more_jars.txt"))
ADVISORIES = ROOT / "tools" / "jar_advisories.txt"


def main() -> int:
    """Return the exit code."""
    lines = vulnerable_jars("".join(path.read_text() for path in JARS), ADVISORIES.read_text())
    for line in lines:
        print(f"audit: {line}")
    return max(audit_packages(), 1 if lines else 0)


def audit_packages() -> int:
    """Return the exit code for Python's packages."""
    if importlib.util.find_spec("pip_audit") is None:
        print("audit: skipped, since pip-audit is not installed (pip install pip-audit)")
        return 0
    command = [sys.executable, "-m", "pip_audit", "--skip-editable", "--format", "json"]
    try:
        done = subprocess.run(
            [*command, "--progress-spinner", "off", "--timeout", "10"],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        found = vulnerable(done.stdout)
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        print("audit: skipped, since the advisories could not be fetched")
        return 0
    for line in found:
        print(f"audit: {line}")
    if not found:
        print("audit: no known vulnerability in what is installed")
    return 1 if found else 0


def vulnerable(report: str) -> list[str]:
    """One line for each vulnerability that pip-audit reports. Raises ValueError, KeyError."""
    return [
        f"{item['name']} {item['version']} has {flaw['id']}; fixed in "
        f"{', '.join(flaw['fix_versions']) or 'no version yet'}"
        for item in json.loads(report)["dependencies"]
        for flaw in item.get("vulns", ())
    ]


def vulnerable_jars(jars: str, advisories: str) -> list[str]:
    """One line for each advisory that concerns a jar of the table."""
    found = []
    names = [line.split()[1] for line in jars.splitlines() if line and not line.startswith("#")]
    for row in advisories.splitlines():
        if not row or row.startswith("#"):
            continue
        artifact, fixed, flaws = row.split(maxsplit=2)
        prefix = artifact.replace(":", "_") + "-"
        for name in names:
            version = name.removeprefix(prefix).removesuffix(".jar")
            if name.startswith(prefix) and _numbers(version) < _numbers(fixed):
                found.append(f"{artifact} {version} has {flaws}; fixed in {fixed}")
    return found


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


if __name__ == "__main__":
    sys.exit(main())
