"""Index paths: how a record's bytes say of which message of the file it is.

A path counts messages from 0 at each level. Enums do not count; the entry of a map does if the file
has it as a message.
"""

from collections.abc import Sequence

from barnabas.schemas.protobuf.nodes import File
from barnabas.schemas.protobuf.scope import joined


def message_at(file: File, indexes: Sequence[int]) -> str:
    """The full name of a path's message. Raises LookupError if the file has none there."""
    messages = file.messages
    name = file.package
    for depth, index in enumerate(indexes):
        if not 0 <= index < len(messages):
            path = ", ".join(str(one) for one in indexes)
            raise LookupError(
                f"no message has the index path [{path}]: at position {depth},"
                f" {index} is not below {len(messages)}"
            )
        message = messages[index]
        name = joined(name, message.name)
        messages = message.messages
    return name


def index_of_message(file: File, full_name: str) -> tuple[int, ...]:
    """The path of a message. Raises LookupError if the file does not have it."""
    name = full_name.removeprefix(".")
    if file.package:
        if not name.startswith(f"{file.package}."):
            raise LookupError(f"{name} is not in the package {file.package}")
        name = name[len(file.package) + 1 :]
    path = []
    messages = file.messages
    for part in name.split("."):
        for index, message in enumerate(messages):
            if message.name == part:
                path.append(index)
                messages = message.messages
                break
        else:
            raise LookupError(f"the schema has no message {full_name}")
    return tuple(path)
