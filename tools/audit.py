"""Look for known vulnerabilities in what is installed: `make audit`, a part of `make check`.

pip-audit does it, with advisories that it asks PyPI for. Where it is not installed, or no network
leads there, that is said in one line and nothing fails: a machine without a network can still check
the code. A dependency with a known vulnerability fails the check.
"""

import importlib.util
import json
import subprocess
import sys

SECONDS_MAX = 120


def main() -> int:
    """Return the exit code."""
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


if __name__ == "__main__":
    sys.exit(main())
