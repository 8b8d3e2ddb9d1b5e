"""Files of a user: the directory for state, and files of secrets, readable by their owner alone."""

import os
import secrets

MODE = 0o600


def state_directory() -> str:
    """Return where a user's programs keep what outlives them, by the XDG Base Directory rules."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(home, "barnabas")


def write_private(path: str, text: str, *, replaces: bool = True) -> None:
    """Write `text` to a file of mode 0600, whole or not at all.

    Raises OSError; FileExistsError where the file exists and `replaces` is False.
    """
    partial = f"{path}.{secrets.token_hex(4)}.partial"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replaces:
            os.replace(partial, path)
        else:
            os.link(partial, path)  # unlike a rename, it fails where the name is taken
    finally:
        if os.path.lexists(partial):
            os.unlink(partial)
