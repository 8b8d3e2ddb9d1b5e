"""A registry through random decisions: nothing forks, nothing comes back, replay is exact.

After each decision its records, written to bytes and read again, are replayed into a second
state, which must equal the first. So must the state that a restarted registry builds from the
compacted topic. A state copied before the decision must not have changed.
"""

from contextlib import suppress
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.registry.contracts import Metadata
from barnabas.registry.core.decision import View
from barnabas.registry.core.deletion import delete_context, delete_subject, delete_version
from barnabas.registry.core.lookup import get_by_id, get_version, look_up
from barnabas.registry.core.modes import delete_mode, set_mode
from barnabas.registry.core.registration import register
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.core.settings import ConfigUpdate, delete_config, update_config
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.encoding import decode_key, decode_value, encode_key, encode_value
from barnabas.registry.store.records import Record, SchemaKey, SchemaValue
from barnabas.registry.store.state import RegistryState
from barnabas.registry.subjects import context_of, qualified_from
from barnabas.schemas.schema import Reference
from support.effort import examples
from support.registry_format import Registry, text

SUBJECTS = st.sampled_from(["a", "b", "c", ":.ctx:a", ":.ctx:b", ""])
PLACES = st.sampled_from([None, "a", "b", ":.ctx:", ":.ctx:a", ":.__GLOBAL:"])
NUMBERS = st.integers(1, 4)
FIELDS = st.lists(st.sampled_from(["x", "y", "z!"]), max_size=2, unique=True)
TYPES = st.sampled_from(["AVRO", "AVRO", "AVRO", "JSON"])
METADATA = st.sampled_from(
    [None, None, Metadata(properties={"k": "v"}), Metadata(properties={"confluent:version": "1"})]
)
REFERENCES = st.lists(
    st.builds(
        Reference,
        st.sampled_from(["N", "M"]),
        st.sampled_from(["a", "b", ":.ctx:a"]),
        st.sampled_from([-1, 1, 2, 3]),
    ),
    max_size=2,
)


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.replayed = RegistryState()
        self.topic: list[tuple[bytes, bytes | None]] = []
        self.content_of_id: dict[tuple[str, int], tuple[Any, ...]] = {}
        """The content that an id of a context was given to, for ever."""
        self.id_of_version: dict[tuple[str, int], int] = {}
        """The id that a version of a subject was given to, for ever."""
        self.given: dict[str, int] = {}
        """The highest version given by counting, by subject."""

    def do(self, decide: Any, *arguments: Any, **options: Any) -> Any:
        before = self.registry.state.copy()
        untouched = before.copy()
        try:
            decision = decide(self.registry.view, *arguments, **options)
        except RegistryError:
            assert self.registry.state == before
            return None
        assert self.registry.state == before
        for record in decision.records:
            self.write(record)
        assert before == untouched
        return decision.response

    def write(self, record: Record) -> None:
        offset = len(self.topic)
        key, value = encode_key(record.key), encode_value(record.value)
        self.topic.append((key, value))
        assert self.registry.state.replay(record.key, record.value, offset) is None
        again = decode_key(key)
        assert again == record.key
        assert self.replayed.replay(again, decode_value(again, value), offset) is None
        if isinstance(record.key, SchemaKey) and isinstance(record.value, SchemaValue):
            self.note(record.value)

    def note(self, value: SchemaValue) -> None:
        content = (
            value.text,
            value.schema_type,
            value.references,
            str(value.metadata),
            str(value.rule_set),
        )
        id_name = (context_of(value.subject), value.id)
        assert self.content_of_id.setdefault(id_name, content) == content
        version_name = (value.subject, value.version)
        assert self.id_of_version.setdefault(version_name, value.id) == value.id

    @rule(
        subject=SUBJECTS,
        fields=FIELDS,
        schema_type=TYPES,
        metadata=METADATA,
        references=REFERENCES,
        version=st.sampled_from([None, None, 0, -1, 1, 2, 3]),
        force=st.booleans(),
    )
    def registers(
        self,
        subject: str,
        fields: list[str],
        schema_type: str,
        metadata: Metadata | None,
        references: list[Reference],
        version: int | None,
        force: bool,
    ) -> None:
        view = self.registry.view
        had = {value.version for value in view.state.versions(subject, "all")}
        highest_id = view.state.max_id(context_of(subject))
        request = SchemaRequest(
            text(*fields), schema_type, tuple(references), metadata, version=version
        )
        value = self.do(register, subject, request, force=force)
        if value is None:
            return
        assert self.registry.state.version(subject, value.version) == value
        if value.version not in had:
            assert (subject, value.version) in self.id_of_version
            assert value.version > self.given.get(subject, 0)
            self.given[subject] = value.version
            known = {name for name in self.content_of_id if name[0] == context_of(subject)}
            assert value.id <= max(number for _, number in known)
            assert value.id <= highest_id + 1
        if (version or 0) > 0 or (value.metadata != metadata and metadata is not None):
            return  # it asks for the next version, and may get it each time
        targets = [qualified_from(subject, reference.subject) for reference in references]
        if subject in targets:
            return  # what it refers to may be itself now
        written = len(self.topic)
        assert self.do(register, subject, request, force=force) == value
        assert len(self.topic) == written

    @rule(
        subject=SUBJECTS,
        fields=FIELDS,
        schema_id=st.integers(0, 9),
        version=st.sampled_from([None, 1, 2, 3, 7]),
    )
    def imports(self, subject: str, fields: list[str], schema_id: int, version: int | None) -> None:
        context = context_of(subject)
        state = self.registry.state
        free = not state.by_id(context, schema_id) and (context, schema_id) in self.content_of_id
        gone = (
            version is not None
            and state.version(subject, version) is None
            and (subject, version) in self.id_of_version
        )
        if free or gone:
            return  # an import may bring back a version that was deleted for good
        request = SchemaRequest(text(*fields), id=schema_id, version=version)
        value = self.do(register, subject, request)
        if value is not None:
            assert value.id == schema_id
            self.given[subject] = max(value.version, self.given.get(subject, 0))

    @rule(subject=SUBJECTS, version=st.one_of(NUMBERS, st.just("latest")), permanent=st.booleans())
    def deletes_version(self, subject: str, version: str | int, permanent: bool) -> None:
        self.do(delete_version, subject, version, permanent=permanent)

    @rule(subject=SUBJECTS, permanent=st.booleans())
    def deletes_subject(self, subject: str, permanent: bool) -> None:
        self.do(delete_subject, subject, permanent=permanent)

    @rule(subject=SUBJECTS)
    def deletes_subject_for_good(self, subject: str) -> None:
        self.do(delete_subject, subject)
        self.do(delete_subject, subject, permanent=True)

    @rule()
    def deletes_context(self) -> None:
        self.do(delete_context, ".ctx")

    @rule(place=PLACES, mode=st.sampled_from(["READWRITE", "READWRITE", "READONLY", "IMPORT"]))
    def sets_mode(self, place: str | None, mode: str) -> None:
        self.do(set_mode, place, mode)

    @rule(place=PLACES)
    def forces_import(self, place: str | None) -> None:
        self.do(set_mode, place, "IMPORT", force=True)

    @rule(place=PLACES, recursive=st.booleans())
    def deletes_mode(self, place: str | None, recursive: bool) -> None:
        self.do(delete_mode, place, recursive=recursive)

    @rule(place=PLACES, level=st.sampled_from(["NONE", "BACKWARD", "FULL_TRANSITIVE"]))
    def updates_config(self, place: str | None, level: str) -> None:
        self.do(update_config, place, ConfigUpdate({"compatibility_level": level}))

    @rule(place=PLACES)
    def deletes_config(self, place: str | None) -> None:
        self.do(delete_config, place)

    @invariant()
    def replay_is_exact(self) -> None:
        assert self.replayed == self.registry.state

    @invariant()
    def compaction_loses_nothing(self) -> None:
        last = {key: offset for offset, (key, _) in enumerate(self.topic)}
        state = RegistryState()
        for offset, (data, value) in enumerate(self.topic):
            if last[data] == offset and value is not None:
                key = decode_key(data)
                assert state.replay(key, decode_value(key, value), offset) is None
        now = self.registry.state
        names = now.subjects(":*:", "all")
        assert state.subjects(":*:", "all") == names
        for name in {*names, *self.given}:
            assert state.versions(name, "all") == now.versions(name, "all")
            assert state.next_version(name) == now.next_version(name)
        for context in (".", ".ctx"):
            assert state.next_id(context) == now.next_id(context)
        assert state.modes() == now.modes()
        assert state.configs() == now.configs()
        assert state.contexts() == now.contexts()

    @invariant()
    def every_live_schema_is_found(self) -> None:
        view = View(self.registry.state, self.registry.formats)
        for value in self.all_versions():
            found = get_version(view, value.subject, value.version, deleted=True)
            assert found == value
            assert get_by_id(view, value.id, value.subject).text == value.text
            if not value.deleted:
                request = SchemaRequest(
                    value.text,
                    value.schema_type,
                    value.references,
                    value.metadata,
                    value.rule_set,
                )
                with suppress(RegistryError):  # what it refers to may have lost its meaning
                    assert look_up(view, value.subject, request).id is not None

    def all_versions(self) -> list[SchemaValue]:
        state = self.registry.state
        return [
            value for name in state.subjects(":*:", "all") for value in state.versions(name, "all")
        ]


Histories.TestCase.settings = settings(
    max_examples=examples(15),
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],  # explaining is slow
)
TestHistories = Histories.TestCase
