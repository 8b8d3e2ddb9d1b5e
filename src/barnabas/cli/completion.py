"""`barnabas completion`: the script that makes a shell complete our commands."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
EPILOG = """\b
Examples:
  source <(barnabas completion bash)
  barnabas completion fish > ~/.config/fish/completions/barnabas.fish
"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print the script as a JSON string.")
def command(shell: str, as_json: bool) -> None:
    """Print the completion script for a shell."""
    from barnabas.cli.main import cli
    from barnabas.cli.output import Output

    completion_class = get_completion_class(shell)
    assert completion_class is not None, f"click knows no shell {shell}"
    source = completion_class(cli, {}, "barnabas", "_BARNABAS_COMPLETE").source()
    Output(as_json).result({"shell": shell, "script": source}, source)
