"""Requests that Barnabas's worker and Kafka's answer in the same way, one after another."""

from __future__ import annotations

from typing import Any

from support.connect.side_by_side import FILE_SINK, FILE_SOURCE, Step, states

SOURCE: dict[str, Any] = {
    "connector.class": FILE_SOURCE,
    "file": "{dir}/in.txt",
    "topic": "lines-{tag}",
    "tasks.max": "1",
}
SINK: dict[str, Any] = {
    "connector.class": FILE_SINK,
    "file": "{dir}/out.txt",
    "topics": "lines-{tag}",
}


def validate(cls: str, **settings: str | None) -> Step:
    path = f"/connector-plugins/{cls.rpartition('.')[2]}/config/validate"
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return Step("PUT", path, {"connector.class": cls, **given})


def status(name: str, *wanted: str) -> Step:
    return Step("GET", f"/connectors/{name}/status", until=states(*wanted))


T = "org.apache.kafka.connect.transforms."
STEPS = [
    Step("GET", "/"),
    Step("GET", "/connectors"),
    Step("GET", "/nothing"),
    Step("DELETE", "/connectors"),
    Step("GET", "/health"),
    Step("GET", "/connectors/x"),
    Step("GET", "/connectors/x/config"),
    Step("GET", "/connectors/x/status"),
    Step("GET", "/connectors/x/tasks"),
    Step("GET", "/connectors/x/topics"),
    Step("GET", "/connectors/x/offsets"),
    Step("DELETE", "/connectors/x"),
    Step("PUT", "/connectors/x/pause"),
    Step("PUT", "/connectors/x/resume"),
    Step("POST", "/connectors/x/restart?includeTasks=true"),
    Step("PATCH", "/connectors/x/config", {"a": "b"}),
    Step("GET", "/connectors/x/tasks/0/status"),
    Step("GET", "/connectors/x/tasks/zero/status"),
    Step("DELETE", "/connectors/x/offsets"),
    Step(
        "PATCH", "/connectors/x/offsets", {"offsets": [{"partition": {"a": 1}, "offset": {"b": 2}}]}
    ),
    Step("PUT", "/connectors/x/topics/reset"),
    Step("GET", "/connectors/x/tasks-config"),
    validate(FILE_SOURCE),
    validate(FILE_SOURCE, name="a", topic="b", tasks__max="0"),
    validate(FILE_SOURCE, name="a", topic="", batch__size="x", errors__tolerance="some"),
    validate(FILE_SINK),
    validate(FILE_SINK, name="a", topics="a,b", topics__regex="c"),
    validate(FILE_SINK, name="s", topics="a", errors__deadletterqueue__topic__name="a"),
    validate(FILE_SINK, name="", topics__regex="("),
    validate(FILE_SINK, name="a", topics="a, a"),
    validate(FILE_SINK, name="a", topics=","),
    validate(FILE_SINK, name="a", topics="a,,b"),
    validate(FILE_SOURCE, name="a", topic="b", exactly__once__support="x"),
    validate(FILE_SOURCE, name="a", topic="b", transaction__boundary="x"),
    validate(
        FILE_SOURCE,
        name="a",
        topic="b",
        transforms="t,p",
        transforms__t__type=T + "InsertField$Value",
        transforms__t__negate="true",
        transforms__p__type="no.such",
    ),
    validate(
        FILE_SOURCE,
        name="a",
        topic="b",
        transforms="t",
        transforms__t__type=T + "Cast$Value",
        transforms__t__predicate="p",
        predicates="p",
        predicates__p__type=T + "predicates.TopicNameMatches",
        predicates__p__pattern="(",
    ),
    validate(
        FILE_SOURCE, name="a", topic="b", transforms="t,t", transforms__t__type=T + "HoistField$Key"
    ),
    validate(
        FILE_SOURCE,
        name="a",
        topic="b",
        value__converter="org.apache.kafka.connect.storage.StringConverter",
        key__converter="org.apache.kafka.connect.json.JsonConverter",
        key__converter__schemas__enable="x",
        header__converter="org.apache.kafka.connect.storage.SimpleHeaderConverter",
    ),
    validate(
        FILE_SOURCE,
        name="a",
        topic="b",
        value__converter="org.apache.kafka.connect.transforms.HoistField$Key",
        key__converter="no.such",
    ),
    validate(
        FILE_SOURCE,
        name="a",
        topic="b",
        exactly__once__support="required",
        transaction__boundary="connector",
        offsets__storage__topic="",
    ),
    validate(
        FILE_SOURCE,
        name="a",
        topic="b",
        topic__creation__groups="g,g",
        topic__creation__default__partitions="1",
    ),
    validate(FILE_SOURCE, name=None, topic="b"),
    Step("PUT", "/connector-plugins/Other/config/validate", {"connector.class": FILE_SOURCE}),
    Step("GET", "/connector-plugins/FileStreamSource/config"),
    Step("GET", f"/connector-plugins/{FILE_SINK}/config"),
    Step("GET", f"/connector-plugins/{T}Cast$Value/config"),
    Step("GET", "/connector-plugins/nothing/config"),
    Step("POST", "/connectors", {"name": "lines-{tag}", "config": SOURCE}),
    status("lines-{tag}", "RUNNING", "RUNNING"),
    Step("POST", "/connectors", {"name": "lines-{tag}", "config": SOURCE}),
    Step("POST", "/connectors", {"name": "other", "config": {**SOURCE, "name": "else"}}),
    Step(
        "POST",
        "/connectors",
        {"name": "other", "config": {**SOURCE, "tasks.max": "x", "topic": ""}},
    ),
    Step("POST", "/connectors", {"config": SOURCE}),
    *[
        Step(
            "POST",
            "/connectors",
            {"name": "q", "config": {**SOURCE, "connector.class": name}},
            only=lambda v: v["error_code"],
        )
        for name in ("no.such", "", f" {FILE_SOURCE} ", T + "HoistField$Key")
    ],
    Step("GET", "/connectors/lines-{tag}"),
    Step("GET", "/connectors/lines-{tag}/config"),
    Step("GET", "/connectors/lines-{tag}/tasks"),
    Step("GET", "/connectors?expand=status&expand=info"),
    Step("GET", "/connectors?expand=no"),
    Step("PUT", "/connectors/out-{tag}/config", SINK),
    status("out-{tag}", "RUNNING", "RUNNING"),
    Step("PUT", "/connectors/out-{tag}/config", {**SINK, "errors.tolerance": "all"}),
    status("out-{tag}", "RUNNING", "RUNNING"),
    Step("GET", "/connectors/out-{tag}/tasks"),
    Step(
        "GET",
        "/connectors/lines-{tag}/offsets",
        until=lambda v: v["offsets"] and v["offsets"][0]["offset"]["position"] == 8,
    ),
    Step(
        "GET",
        "/connectors/out-{tag}/offsets",
        until=lambda v: v["offsets"] and v["offsets"][0]["offset"]["kafka_offset"] == 2,
    ),
    Step("GET", "/connectors/lines-{tag}/topics", until=lambda v: v["lines-{tag}"]["topics"]),
    Step("GET", "/connectors/out-{tag}/topics", until=lambda v: v["out-{tag}"]["topics"]),
    Step("PUT", "/connectors/lines-{tag}/topics/reset"),
    # A task of Kafka's that is just writing tells its topic again at once.
    Step("GET", "/connectors/lines-{tag}/topics", only=list),
    Step(
        "PATCH",
        "/connectors/lines-{tag}/offsets",
        {"offsets": [{"partition": {"filename": "x"}, "offset": {"position": 0}}]},
    ),
    Step("DELETE", "/connectors/lines-{tag}/offsets"),
    Step("PUT", "/connectors/lines-{tag}/pause"),
    status("lines-{tag}", "PAUSED", "PAUSED"),
    Step("PUT", "/connectors/lines-{tag}/resume"),
    status("lines-{tag}", "RUNNING", "RUNNING"),
    Step("POST", "/connectors/lines-{tag}/restart"),
    status("lines-{tag}", "RUNNING", "RUNNING"),
    Step("POST", "/connectors/lines-{tag}/restart?includeTasks=true&onlyFailed=false"),
    status("lines-{tag}", "RUNNING", "RUNNING"),
    Step("POST", "/connectors/lines-{tag}/restart?includeTasks=true&onlyFailed=true"),
    Step("POST", "/connectors/lines-{tag}/tasks/0/restart"),
    status("lines-{tag}", "RUNNING", "RUNNING"),
    Step("PUT", "/connectors/lines-{tag}/stop"),
    status("lines-{tag}", "STOPPED"),
    Step("GET", "/connectors/lines-{tag}"),
    Step("PATCH", "/connectors/lines-{tag}/offsets", {"offsets": []}),
    Step("PATCH", "/connectors/lines-{tag}/offsets", {}),
    Step(
        "PATCH",
        "/connectors/lines-{tag}/offsets",
        {"offsets": [{"partition": {"other": "x"}, "offset": {"position": 0}}]},
    ),
    Step(
        "PATCH",
        "/connectors/lines-{tag}/offsets",
        {"offsets": [{"partition": {"filename": "{dir}/in.txt"}, "offset": {"position": "x"}}]},
    ),
    Step(
        "PATCH",
        "/connectors/lines-{tag}/offsets",
        {"offsets": [{"partition": {"filename": "{dir}/in.txt"}, "offset": {"position": -1}}]},
    ),
    Step(
        "PATCH",
        "/connectors/lines-{tag}/offsets",
        {"offsets": [{"partition": {"filename": ["x"]}, "offset": {"position": 1}}]},
    ),
    Step(
        "PATCH",
        "/connectors/lines-{tag}/offsets",
        {"offsets": [{"partition": {"filename": "x"}, "offset": {"position": 2**63}}]},
    ),
    Step(
        "PATCH",
        "/connectors/lines-{tag}/offsets",
        {"offsets": [{"partition": {"filename": "{dir}/in.txt"}, "offset": {"position": 4}}]},
    ),
    Step("GET", "/connectors/lines-{tag}/offsets"),
    Step("DELETE", "/connectors/lines-{tag}/offsets"),
    Step("GET", "/connectors/lines-{tag}/offsets"),
    Step("DELETE", "/connectors/lines-{tag}/offsets"),
    Step("PUT", "/connectors/out-{tag}/stop"),
    status("out-{tag}", "STOPPED"),
    *[
        Step("PATCH", "/connectors/out-{tag}/offsets", {"offsets": [o]})
        for o in (
            {"partition": None, "offset": None},
            {"partition": {"kafka_topic": "a"}, "offset": None},
            {"partition": {"kafka_topic": None, "kafka_partition": 1}, "offset": None},
            {"partition": {"kafka_topic": "a", "kafka_partition": None}},
            {"partition": {"kafka_topic": "a", "kafka_partition": "x"}},
            {"partition": {"kafka_topic": "a", "kafka_partition": 1}, "offset": {"o": 1}},
            {
                "partition": {"kafka_topic": "a", "kafka_partition": 1},
                "offset": {"kafka_offset": "x"},
            },
            *(
                {
                    "partition": {"kafka_topic": topic, "kafka_partition": one},
                    "offset": {"kafka_offset": o},
                }
                for topic, one, o in (
                    ("a", 2**31, 1),
                    ("a", 0, 2**63),
                    ("a", 0, "1 "),
                    ("a", 0, True),
                    ("lines-{tag}", 0, -1),
                    ("lines-{tag}", -1, 1),
                    ("", 0, 1),
                )
            ),
            {
                "partition": {"kafka_topic": "lines-{tag}", "kafka_partition": "0"},
                "offset": {"kafka_offset": "1"},
            },
        )
    ],
    Step("GET", "/connectors/out-{tag}/offsets"),
    Step(
        "PATCH",
        "/connectors/out-{tag}/offsets",
        {
            "offsets": [
                {"partition": {"kafka_topic": "lines-{tag}", "kafka_partition": 0}, "offset": None}
            ]
        },
    ),
    Step("GET", "/connectors/out-{tag}/offsets"),
    Step("DELETE", "/connectors/out-{tag}/offsets"),
    Step("PATCH", "/connectors/out-{tag}/config", {"tasks.max": "2", "errors.tolerance": None}),
    Step("PUT", "/connectors/out-{tag}/resume"),
    status("out-{tag}", "RUNNING", "RUNNING", "RUNNING"),
    Step("POST", "/connectors", {"name": "p-{tag}", "config": SOURCE, "initial_state": "PAUSED"}),
    Step(
        "GET",
        "/connectors/p-{tag}/status",
        until=lambda v: v.get("connector", {}).get("state") == "PAUSED",
    ),
    Step("POST", "/connectors", {"name": "st-{tag}", "config": SOURCE, "initial_state": "stopped"}),
    status("st-{tag}", "STOPPED"),
    Step(
        "POST",
        "/connectors",
        {"name": "q", "config": SOURCE, "initial_state": "no"},
        only=lambda v: v["error_code"],
    ),
    Step("POST", "/connectors", {"name": "q", "config": {"a": {}}}, only=lambda v: v["error_code"]),
    Step(
        "POST",
        "/connectors",
        {
            "name": "fails-{tag}",
            "config": {
                **SOURCE,
                "transforms": "t",
                "transforms.t.type": T + "Cast$Value",
                "transforms.t.spec": "a:int8",
            },
        },
    ),
    status("fails-{tag}", "RUNNING", "FAILED"),
    Step("DELETE", "/connectors/fails-{tag}"),
    Step("DELETE", "/connectors/lines-{tag}"),
    Step("GET", "/connectors/lines-{tag}/status", until=lambda v: "error_code" in v),
    Step("PUT", "/admin/loggers/no.such.logger", {"level": "nope"}),
    Step("PUT", "/admin/loggers/no.such.logger", {}),
    Step("PUT", "/admin/loggers/no.such.logger", {"level": "warn"}),
    Step("GET", "/admin/loggers/no.such.logger", only=lambda v: v["level"]),
    Step("PUT", "/admin/loggers/no.such.logger?scope=cluster", {"level": "error"}),
    Step("GET", "/admin/loggers/none"),
]
