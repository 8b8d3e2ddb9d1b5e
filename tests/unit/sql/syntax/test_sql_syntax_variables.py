"""Substitution of variables: where they may stand, and what they may hold there."""

from __future__ import annotations

import pytest

from barnabas.sql.errors import ParseError
from barnabas.sql.syntax.variables import substitute, substitute_text

VARIABLES = {
    "env": "qa",
    "name": "_id_",
    "quoted": '"_id_"',
    "backquoted": "`_id_`",
    "number": "1",
    "decimal": "0.32",
    "bool": "false",
    "string": "'john'",
    "sly": "'t1', value_format='AVRO'",
    "two": "s1 WHERE id = 1",
    "list": "1, 5",
    "dated": "d-${env}",
    "loop": "${loop2}",
    "loop2": "${loop}",
}

REPLACED = {
    "DEFINE t = 'topic_${env}';": "DEFINE t = 'topic_qa';",
    "DEFINE t = 'topic_$${env}';": "DEFINE t = 'topic_${env}';",
    "DEFINE t = 'topic_$${${env}}';": "DEFINE t = 'topic_${qa}';",
    "DEFINE t = '${unknown}';": "DEFINE t = '${unknown}';",
    "DEFINE t = '${string}';": "DEFINE t = ''john'';",
    "DESCRIBE ${name} EXTENDED;": "DESCRIBE _id_ EXTENDED;",
    "DESCRIBE FUNCTION ${quoted};": 'DESCRIBE FUNCTION "_id_";',
    "INSERT INTO ${backquoted} VALUES (${number}, ${bool}, ${decimal}, ${string});": (
        "INSERT INTO `_id_` VALUES (1, false, 0.32, 'john');"
    ),
    "CREATE STREAM ${name} WITH (kafka_topic=${string}, replicas=${number});": (
        "CREATE STREAM _id_ WITH (kafka_topic='john', replicas=1);"
    ),
    "CREATE STREAM s1 WITH (kafka_topic=${sly});": (
        "CREATE STREAM s1 WITH (kafka_topic='t1'', value_format=''AVRO');"
    ),
    "ASSERT TOPIC '${env}';": "ASSERT TOPIC 'qa';",
    "ASSERT TOPIC ${env};": "ASSERT TOPIC qa;",
    "SET '${env}'='${env}';": "SET 'qa'='qa';",
    "SELECT ${env}.${name} FROM ${env} WHERE x = ${decimal};": (
        "SELECT qa._id_ FROM qa WHERE x = 0.32;"
    ),
    "PRINT '${dated}';": "PRINT 'd-${env}';",
    "SELECT ${env} FROM s;": "Illegal argument at Line: 1, Col: 8. Got: 'qa'",
    "DESCRIBE ${two};": (
        "Illegal argument at Line: 1, Col: 10. Identifier names cannot start with '@' and may only "
        "contain alphanumeric values and '_'. Got: 's1 WHERE id = 1'"
    ),
    "DESCRIBE ${unknown};": "Got: '${unknown}'",
    "INSERT INTO s1 VALUES (${list});": "Illegal argument at Line: 1, Col: 24. Got: '1, 5'",
}


@pytest.mark.parametrize(("text", "expected"), REPLACED.items())
def test_variables_in_statements(text: str, expected: str) -> None:
    if "Got:" not in expected:
        assert substitute(text, VARIABLES) == expected
        return
    with pytest.raises(ParseError) as raised:
        substitute(text, VARIABLES)
    assert expected in str(raised.value)


def test_variables_in_any_text() -> None:
    assert substitute_text("it is ${dated} and ${no}", VARIABLES) == "it is d-qa and ${no}"
    with pytest.raises(ParseError, match="Infinite loop in property interpolation of loop"):
        substitute_text("${loop}", VARIABLES)
