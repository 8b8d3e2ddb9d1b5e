"""Commands that need packages which not everybody installs."""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.base.extras import install_hint
from barnabas.cli.errors import CliError


@contextmanager
def extra_packages(extra: str, needs: str) -> Iterator[None]:
    """Import inside; raises CliError, which begins with `needs`, where a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("barnabas"):
            raise
        raise CliError(
            f"{needs} {error.name}, which is not installed",
            hint=install_hint(extra),
        ) from error
