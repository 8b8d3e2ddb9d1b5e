"""The names that a file can use: its own and those of the files that it imports."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from barnabas.schemas.protobuf.nodes import Enum, Extend, Field, File, Group, Import, Message

Load = Callable[[str], File | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A message or enum. `path` is that of its file, empty for the file whose scope it is."""

    full_name: str
    package: str
    node: Message | Enum
    path: str

    @property
    def local_name(self) -> str:
        """The name without the package."""
        return self.full_name[len(self.package) + 1 :] if self.package else self.full_name


@dataclass(frozen=True, slots=True)
class ExtensionEntry:
    """A field of an `extend` block. `within` is the full name of what stands around the block."""

    full_name: str
    within: str
    node: Field | Group

    @property
    def type_name(self) -> str:
        """The type's name as `within` resolves it; a group's is its own."""
        return self.node.name if isinstance(self.node, Group) else self.node.type


@dataclass(slots=True)
class Scope:
    """`files` are all files that were reached, by path, each behind those that it imports.

    `visible` are the paths whose names the file may use, `missing` the imports without a file,
    `cycle` the paths of imports that lead back to where they began.
    """

    root: File
    files: dict[str, File] = field(default_factory=dict)
    visible: set[str] = field(default_factory=set)
    missing: list[Import] = field(default_factory=list)
    cycle: tuple[str, ...] = ()
    entries: dict[str, Entry] = field(default_factory=dict)
    extensions: dict[str, ExtensionEntry] = field(default_factory=dict)

    def resolve(self, name: str, within: str) -> Entry | None:
        """The message or enum of a name as written inside of `within`, a full name."""
        for candidate in _candidates(name, within):
            entry = self.entries.get(candidate)
            if entry is not None:
                return entry
        return None

    def resolve_extension(self, name: str, within: str) -> ExtensionEntry | None:
        for candidate in _candidates(name, within):
            entry = self.extensions.get(candidate)
            if entry is not None:
                return entry
        return None


def scope_of(root: File, load: Load) -> Scope:
    """Collect the names of a file and, as far as `load` finds them, of all that it imports."""
    scope = Scope(root)
    _reach(scope, load)
    for path, file in scope.files.items():
        _collect(scope, file, path)
    _collect(scope, root, "")
    scope.visible.add("")
    for one in root.imports:
        _see(scope, one.path)
    return scope


def joined(within: str, name: str) -> str:
    """A full name from its scope's and its own."""
    return f"{within}.{name}" if within else name


def _candidates(name: str, within: str) -> Iterable[str]:
    if name.startswith("."):
        yield name[1:]
        return
    while within:
        yield f"{within}.{name}"
        within = within.rpartition(".")[0]
    yield name


def _reach(scope: Scope, load: Load) -> None:
    """Find the files, without recursion, since a chain of imports may be long."""
    under_way: dict[str, None] = {}
    stack: list[tuple[str, Iterable[Import]]] = [("", iter(scope.root.imports))]
    while stack:
        path, imports = stack[-1]
        for one in imports:
            if one.path in scope.files:
                continue
            if one.path in under_way:
                if not scope.cycle:
                    around = list(under_way)
                    scope.cycle = (*around[around.index(one.path) :], one.path)
                continue
            file = load(one.path)
            if file is None:
                scope.missing.append(one)
                continue
            under_way[one.path] = None
            stack.append((one.path, iter(file.imports)))
            break
        else:
            stack.pop()
            if path:
                del under_way[path]
                file = load(path)
                assert file is not None
                scope.files[path] = file


def _see(scope: Scope, path: str) -> None:
    """An imported file, and those that it imports publicly, may be used."""
    stack = [path]
    while stack:
        path = stack.pop()
        if path in scope.visible:
            continue
        scope.visible.add(path)
        file = scope.files.get(path)
        if file is not None:
            stack.extend(one.path for one in file.imports if one.kind == "public")


@dataclass(slots=True)
class _Names:
    """The names that one file declares."""

    package: str
    path: str
    entries: dict[str, Entry] = field(default_factory=dict)
    extensions: dict[str, ExtensionEntry] = field(default_factory=dict)

    def types(self, messages: Iterable[Message], enums: Iterable[Enum], within: str) -> None:
        for enum in enums:
            self._add(joined(within, enum.name), enum)
        for message in messages:
            name = joined(within, message.name)
            self._add(name, message)
            self.types(message.messages, message.enums, name)
            groups = [group.body for group in message.all_groups()]
            self.types([*groups, *_bodies(message.extends)], (), name)
            self.extends(message.extends, name)

    def _add(self, name: str, node: Message | Enum) -> None:
        self.entries[name] = Entry(name, self.package, node, self.path)

    def extends(self, extends: Iterable[Extend], within: str) -> None:
        for extend in extends:
            for node in extend.members():
                own = node.name.lower() if isinstance(node, Group) else node.name
                name = joined(within, own)
                self.extensions[name] = ExtensionEntry(name, within, node)


def _collect(scope: Scope, file: File, path: str) -> None:
    names = file.names.get(path)
    if not isinstance(names, _Names):
        names = _Names(file.package, path)
        names.types(file.messages, file.enums, file.package)
        names.extends(file.extends, file.package)
        # A group of an `extend` block is a message beside the block.
        names.types(_bodies(file.extends), (), file.package)
        file.names[path] = names
    scope.entries.update(names.entries)
    scope.extensions.update(names.extensions)


def _bodies(extends: Iterable[Extend]) -> list[Message]:
    return [group.body for extend in extends for group in extend.groups]
