"""Pin what every extra needs, with hashes: `python tools/constraints.py` writes constraints.txt.

uv resolves for all platforms and Python versions (`pip install uv`). Versions that are installed
here, with which the tests run, are preferred. The file names no registry: pip asks the one that it
is configured for, and the hashes say whether that gives the same files. `make audit` and a test
compare the file with pyproject.toml.
"""

import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "constraints.txt"
EXTRAS = ("connect", "console", "demo", "otel", "registry", "security", "spark", "sql")
BUILD = "hatchling>=1.25,<2"
HEAD = """\
# What all extras need and what builds the package, with hashes: see docs/install.md.
# Written by tools/constraints.py.
"""


def main() -> int:
    """Return the exit code."""
    with tempfile.TemporaryDirectory() as directory:
        installed = Path(directory) / "installed.txt"
        build = Path(directory) / "build.in"
        build.write_text(BUILD)
        installed.write_text(
            "\n".join(
                f"{one.name}=={one.version}" for one in distributions() if one.name != "barnabas"
            )
        )
        command = [
            *(sys.executable, "-m", "uv", "pip", "compile", "--quiet"),
            *("pyproject.toml", str(build)),
            *(word for extra in EXTRAS for word in ("--extra", extra)),
            *("--constraint", str(installed), "--python-version", "3.11", "--universal"),
            *("--generate-hashes", "--no-header", "--no-annotate"),
        ]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return done.returncode
    if "://" in done.stdout:
        print("constraints: a requirement names an address")
        return 1
    TARGET.write_text(HEAD + done.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
