"""Differences between two files, and which of them break readers, by Confluent's rules.

Fields are the same if their numbers are. A reader sees what was written if the wire format of a
field stays: numbers of one kind, strings and bytes, the same message. Messages of other files are
compared where the field that uses them is, unless both files name the same subject and version.

It is stricter than Confluent's registry where that calls a reader compatible that cannot read the
data: a field that becomes repeated (or no longer is) breaks readers with or without a written label
(proto3 has none), and groups are fields.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.schemas.protobuf.nodes import SCALARS, Enum, Field, Group, Message, OneOf
from barnabas.schemas.protobuf.scope import Entry, Scope, joined
from barnabas.schemas.schema import Incompatibility

Versions = Mapping[str, tuple[str, int]]


def compare(
    original: Scope, update: Scope, original_versions: Versions, update_versions: Versions
) -> list[Difference]:
    """The changes from the old file to the new one.

    The versions are subject and version of each import that is a reference, by its path.
    """
    return _Comparison(original, update, original_versions, update_versions).run()


@dataclass(slots=True)
class _Members:
    """The fields of a message by number, and which of them are in a oneof."""

    fields: dict[int, Field | Group] = field(default_factory=dict)
    oneof_of: dict[int, str] = field(default_factory=dict)
    oneofs: dict[str, OneOf] = field(default_factory=dict)


_Pair = tuple[str, str]


class _Comparison:
    def __init__(
        self, original: Scope, update: Scope, original_versions: Versions, update_versions: Versions
    ) -> None:
        self._original = original
        self._update = update
        self._original_versions = original_versions
        self._update_versions = update_versions
        self._differences: list[Difference] = []
        self._path: list[str] = []
        # Pairs of messages of other files wait here, so that a long chain of them is no recursion.
        self._waiting: deque[tuple[Entry, Entry]] = deque()
        self._pairs: set[_Pair] = set()
        self._broken: set[_Pair] = set()
        self._uses: list[tuple[str, _Pair | None, _Pair]] = []
        self._current: _Pair | None = None

    def run(self) -> list[Difference]:
        old, new = self._original.root, self._update.root
        if old.package != new.package:
            self._note("PACKAGE_CHANGED")
        self._types(old.messages, old.enums, new.messages, new.enums, old.package, new.package)
        while self._waiting:
            old_entry, new_entry = self._waiting.popleft()
            self._current = (old_entry.full_name, new_entry.full_name)
            self._path = new_entry.local_name.split(".")
            assert isinstance(old_entry.node, Message)
            assert isinstance(new_entry.node, Message)
            self._message(old_entry.node, new_entry.node, old_entry.full_name, new_entry.full_name)
        self._blame_users()
        return self._differences

    def _blame_users(self) -> None:
        """A field whose message broke has changed its type, and so has its user's."""
        users: dict[_Pair, list[_Pair | None]] = {}
        for _, user, used in self._uses:
            users.setdefault(used, []).append(user)
        spreading = list(self._broken)
        while spreading:
            for user in users.get(spreading.pop(), ()):
                if user is not None and user not in self._broken:
                    self._broken.add(user)
                    spreading.append(user)
        for path, _, used in self._uses:
            if used in self._broken:
                self._differences.append(Difference("FIELD_NAMED_TYPE_CHANGED", path))

    def _note(self, kind: str, *parts: str | int) -> None:
        path = "#/" + "/".join([*self._path, *(str(part) for part in parts)])
        difference = Difference(kind, path)
        self._differences.append(difference)
        if self._current is not None and not difference.is_compatible:
            self._broken.add(self._current)

    def _types(
        self,
        old_messages: Sequence[Message],
        old_enums: Sequence[Enum],
        new_messages: Sequence[Message],
        new_enums: Sequence[Enum],
        old_within: str,
        new_within: str,
    ) -> None:
        olds = {one.name: (index, one) for index, one in enumerate(old_messages)}
        news = {one.name: (index, one) for index, one in enumerate(new_messages)}
        for name in {**olds, **news}:
            old, new = olds.get(name), news.get(name)
            if new is None:
                if old is not None and not old[1].is_map_entry:
                    self._note("MESSAGE_REMOVED", name)
            elif old is None:
                if not new[1].is_map_entry:
                    self._note("MESSAGE_ADDED", name)
            else:
                self._path.append(name)
                self._message(old[1], new[1], joined(old_within, name), joined(new_within, name))
                if old[0] != new[0]:
                    self._note("MESSAGE_MOVED")
                self._path.pop()
        self._enums(
            {enum.name: enum for enum in old_enums}, {enum.name: enum for enum in new_enums}
        )

    def _enums(self, olds: Mapping[str, Enum], news: Mapping[str, Enum]) -> None:
        for name in {**olds, **news}:
            if name not in news:
                self._note("ENUM_REMOVED", name)
            elif name not in olds:
                self._note("ENUM_ADDED", name)
            else:
                self._enum(name, olds[name], news[name])

    def _enum(self, name: str, old: Enum, new: Enum) -> None:
        old_names = {value.number: value.name for value in old.values}
        new_names = {value.number: value.name for value in new.values}
        for number in sorted({**old_names, **new_names}):
            if number not in new_names:
                self._note("ENUM_CONST_REMOVED", name, number)
            elif number not in old_names:
                self._note("ENUM_CONST_ADDED", name, number)
            elif old_names[number] != new_names[number]:
                self._note("ENUM_CONST_CHANGED", name, number)

    def _message(self, old: Message, new: Message, old_name: str, new_name: str) -> None:
        before, after = _members(old), _members(new)
        self._exclusions(before, after)
        for name in sorted({**before.oneofs, **after.oneofs}):
            if name not in after.oneofs:
                self._note("ONEOF_REMOVED", name)
            elif name not in before.oneofs:
                self._note("ONEOF_ADDED", name)
        deleted = _deleted_oneofs(before, after)
        for number in sorted({**before.fields, **after.fields}):
            if number not in after.fields:
                self._removed(before, number, deleted)
            elif number not in before.fields:
                self._added(after, number)
            else:
                self._kept(before, after, number, old_name, new_name)
        self._types(old.messages, old.enums, new.messages, new.enums, old_name, new_name)

    def _exclusions(self, before: _Members, after: _Members) -> None:
        """Fields that could be set together and no longer can."""
        for name, oneof in after.oneofs.items():
            origins = set()
            loose = 0
            stayed = _numbers_in(before.oneofs.get(name))
            for node in oneof.members():
                if node.number in stayed:
                    origins.add(name)  # another oneof may hold the number too: no rule forbade it
                elif node.number in before.oneof_of:
                    origins.add(before.oneof_of[node.number])
                elif node.number in before.fields:
                    origins.add(f"#{node.number}")
                    loose += 1
            if len(origins) > 1:
                several = loose > 1
                self._note(
                    "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
                    if several
                    else "FIELD_MOVED_TO_EXISTING_ONEOF",
                    name,
                )

    def _removed(self, before: _Members, number: int, deleted: set[str]) -> None:
        oneof = before.oneof_of.get(number)
        if oneof is not None:
            if oneof not in deleted:
                self._note("ONEOF_FIELD_REMOVED", oneof, number)
        elif before.fields[number].label == "required":
            self._note("REQUIRED_FIELD_REMOVED", number)
        else:
            self._note("FIELD_REMOVED", number)

    def _added(self, after: _Members, number: int) -> None:
        oneof = after.oneof_of.get(number)
        if oneof is not None:
            self._note("ONEOF_FIELD_ADDED", oneof, number)
        elif after.fields[number].label == "required":
            self._note("REQUIRED_FIELD_ADDED", number)
        else:
            self._note("FIELD_ADDED", number)

    def _kept(
        self, before: _Members, after: _Members, number: int, old_name: str, new_name: str
    ) -> None:
        old, new = before.fields[number], after.fields[number]
        oneof = after.oneof_of.get(number)
        if oneof is None and number in before.oneof_of:
            self._note("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", number)
        depth = len(self._path)
        self._path.extend([str(number)] if oneof is None else [oneof, str(number)])
        if old.name != new.name:
            self._note("FIELD_NAME_CHANGED")
        self._labels_and_types(
            old.label,
            new.label,
            type_of(old, old_name, self._original),
            type_of(new, new_name, self._update),
        )
        del self._path[depth:]

    def _labels_and_types(
        self, old_label: str | None, new_label: str | None, old: FieldType, new: FieldType
    ) -> None:
        if old.kind != new.kind:
            self._note("FIELD_KIND_CHANGED")
        elif old.kind == "scalar":
            self._scalars(old_label, new_label, old, new)
        elif old.kind == "map":
            keys = [
                named_type(one.key, one.within, scope)
                for one, scope in ((old, self._original), (new, self._update))
            ]
            self._labels_and_types(None, None, *keys)
            self._labels_and_types(
                None,
                None,
                named_type(old.name, old.within, self._original),
                named_type(new.name, new.within, self._update),
            )
        else:
            self._messages(old, new)

    def _scalars(
        self, old_label: str | None, new_label: str | None, old: FieldType, new: FieldType
    ) -> None:
        if old.scalar_kind != new.scalar_kind:
            self._note("FIELD_SCALAR_KIND_CHANGED")
        elif _labels_differ(old_label, new_label):
            self._note(
                "FIELD_STRING_OR_BYTES_LABEL_CHANGED"
                if old.scalar_kind == STRING_OR_BYTES
                else "FIELD_NUMERIC_LABEL_CHANGED"
            )

    def _messages(self, old: FieldType, new: FieldType) -> None:
        if old.entry is None or new.entry is None:
            # Of what cannot be found, the name as written has to do.
            if old.name != new.name:
                self._note("FIELD_NAMED_TYPE_CHANGED")
            return
        if old.entry.local_name != new.entry.local_name:
            self._note("FIELD_NAMED_TYPE_CHANGED")
        elif old.kind == "group" or not self._is_same_file(old.entry, new.entry):
            pair = (old.entry.full_name, new.entry.full_name)
            path = "#/" + "/".join(self._path)
            self._uses.append((path, self._current, pair))
            if pair not in self._pairs:
                self._pairs.add(pair)
                self._waiting.append((old.entry, new.entry))

    def _is_same_file(self, old: Entry, new: Entry) -> bool:
        """Return whether the two are compared anyhow, or cannot differ."""
        if not (old.path or new.path):
            return True
        file = self._original.files.get(old.path)
        if old.node is new.node and file is not None and not file.imports:
            return True  # a text is read once; what it imports may be another one each time
        version = self._original_versions.get(old.path)
        return version is not None and version == self._update_versions.get(new.path)


def _members(message: Message) -> _Members:
    members = _Members()
    for node in message.members():
        members.fields[node.number] = node
    for oneof in message.oneofs:
        members.oneofs[oneof.name] = oneof
        for node in oneof.members():
            members.oneof_of[node.number] = oneof.name
    return members


def _numbers_in(oneof: OneOf | None) -> set[int]:
    return set() if oneof is None else {node.number for node in oneof.members()}


def _deleted_oneofs(before: _Members, after: _Members) -> set[str]:
    """Oneofs that went with all of their fields, which is as good as if they were never set."""
    return {
        name
        for name, oneof in before.oneofs.items()
        if name not in after.oneofs and not _any_in(oneof, after.fields)
    }


def _any_in(oneof: OneOf, numbers: Container[int]) -> bool:
    return any(node.number in numbers for node in oneof.members())


def _labels_differ(old: str | None, new: str | None) -> bool:
    if old is None or new is None:
        return (old == "repeated") != (new == "repeated")
    return old != new


# -- types of fields as readers see them: the encoding, and the meaning of the type's name


_NUMBER = "number"
STRING_OR_BYTES = "string or bytes"
_SCALAR_KINDS = {
    **dict.fromkeys(["int32", "int64", "uint32", "uint64", "bool"], _NUMBER),
    **dict.fromkeys(["sint32", "sint64"], "zigzag"),
    **dict.fromkeys(["string", "bytes"], STRING_OR_BYTES),
    **dict.fromkeys(["fixed32", "sfixed32"], "fixed32"),
    **dict.fromkeys(["fixed64", "sfixed64"], "fixed64"),
    "float": "float",
    "double": "double",
}


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type of a field with the scope that its names are resolved in.

    `kind` is scalar, message, group or map; `entry` is what its name means, if that was found.
    """

    kind: str
    name: str
    within: str
    entry: Entry | None = None
    key: str = ""

    @property
    def scalar_kind(self) -> str:
        return _NUMBER if self.entry is not None else _SCALAR_KINDS[self.name]


def type_of(node: Field | Group, within: str, scope: Scope) -> FieldType:
    """The type of a field of the message `within`."""
    if isinstance(node, Group):
        return FieldType("group", node.name, within, scope.resolve(node.name, within))
    if node.key_type is not None:
        return FieldType("map", node.type, within, None, node.key_type)
    return named_type(node.type, within, scope)


def named_type(name: str, within: str, scope: Scope) -> FieldType:
    """The type of a name as written in the message `within`."""
    if name in SCALARS:
        return FieldType("scalar", name, within)
    entry = scope.resolve(name, within)
    if entry is None:
        return FieldType("message", name, within)
    if isinstance(entry.node, Enum):
        return FieldType("scalar", name, within, entry)
    if entry.node.is_map_entry:
        parts = {one.name: one.type for one in entry.node.fields}
        if "key" in parts and "value" in parts:
            return FieldType("map", parts["value"], entry.full_name, None, parts["key"])
    return FieldType("message", name, within, entry)


# -- the kinds of changes between two files, which of them break readers, and their
# descriptions


_COMPATIBLE = frozenset(
    [
        "MESSAGE_ADDED",
        "MESSAGE_MOVED",
        "ENUM_ADDED",
        "ENUM_REMOVED",
        "ENUM_CONST_ADDED",
        "ENUM_CONST_CHANGED",
        "ENUM_CONST_REMOVED",
        "FIELD_ADDED",
        "FIELD_REMOVED",
        "FIELD_NAME_CHANGED",
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED",
        "ONEOF_ADDED",
        "ONEOF_REMOVED",
        "ONEOF_FIELD_ADDED",
        "ONEOF_FIELD_MOVED_TO_TOP_LEVEL",
    ]
)
_DESCRIPTIONS = {
    "PACKAGE_CHANGED": "the two schemas have different packages",
    "MESSAGE_REMOVED": "the new schema lacks a message of the old one, {path}",
    "FIELD_KIND_CHANGED": (
        "the field {path} changes between a scalar, a message, a group and a map"
    ),
    "FIELD_SCALAR_KIND_CHANGED": "the scalar field {path} changes to a type of another encoding",
    "FIELD_NAMED_TYPE_CHANGED": "the field {path} changes to another message",
    "FIELD_NUMERIC_LABEL_CHANGED": "the label of the numeric field {path} changes",
    "REQUIRED_FIELD_ADDED": "the new schema has a required field {path} that the old one lacks",
    "REQUIRED_FIELD_REMOVED": "the new schema lacks the required field {path} of the old one",
    "ONEOF_FIELD_REMOVED": "the new schema lacks a field of a oneof of the old one, {path}",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "several fields that were outside a oneof in the old schema are in {path} in the new one"
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "the oneof {path} has a field in the new schema that stood outside of it in the old one"
    ),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A change at a place of the new file: `#/Message/Nested/number of the field`."""

    kind: str
    path: str

    @property
    def is_compatible(self) -> bool:
        return self.kind in _COMPATIBLE

    def incompatibility(self) -> Incompatibility:
        description = _DESCRIPTIONS.get(self.kind, "").format(path=self.path)
        return Incompatibility(self.kind, self.path, description)
