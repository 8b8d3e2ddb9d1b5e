"""Which command installs what a part needs beyond the core."""


def install_hint(extra: str) -> str:
    """The command that installs an extra, and where to type it.

    Never by the package's name: on the public index that name belongs to another project.
    """
    return f"pip install '.[{extra}]' in the checkout of Barnabas"
