"""Our authorizer against Kafka's StandardAuthorizer: the same ACLs, the same answers.

Needs `java` and Kafka's jars in `.cache/kafka-*/libs`; where they are absent test_authorizer.py,
with rules in their plainest form, is the only judge.
"""

import random
import subprocess
from pathlib import Path
from typing import Final

from barnabas.node.security.authorizer import Caller
from barnabas.node.security.principal import Principal
from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from support.acl_world import AclWorld, acl
from support.apache_kafka import java_with_kafka, needs_apache_kafka
from support.effort import examples

pytestmark = needs_apache_kafka

WORLDS: Final = examples(60)
QUESTIONS: Final = 25
NAMES: Final = ["a", "ab", "abc", "abd", "b", "*", "hardcode", "h"]
USERS: Final = ["alice", "bob", "root"]
HOSTS: Final = ["10.0.0.1", "10.0.0.2"]
OPERATIONS: Final = list(Operation)[2:]
TYPES: Final = [ResourceType.TOPIC, ResourceType.GROUP]


def test_the_same_answers() -> None:
    source = random.Random(14)
    asked, ours = [], []
    for _ in range(WORLDS):
        allows_everyone = source.random() < 0.3
        asked.append(f"new\t{str(allows_everyone).lower()}")
        acls = [
            acl(
                number,
                source.choice(["User:alice", "User:bob", "User:*"]),
                source.choice(OPERATIONS),
                source.choice(NAMES),
                resource_type=source.choice(TYPES),
                pattern=source.choice([PatternType.LITERAL, PatternType.PREFIXED]),
                permission=source.choice([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
                host=source.choice([*HOSTS, "*", "*"]),
            )
            for number in range(source.randrange(12))
        ]
        # No cluster has two equal ACLs: Kafka's authorizer fails at the second.
        by_line = {
            f"acl\t{each.resource_type:d}\t{each.resource_name}\t{each.pattern_type:d}\t"
            f"{each.principal}\t{each.host}\t{each.operation:d}\t{each.permission_type:d}": each
            for each in acls
        }
        asked.extend([*by_line, "load"])
        world = AclWorld(
            *by_line.values(),
            allows_everyone=allows_everyone,
            super_users=frozenset({"User:root"}),
        )
        for _ in range(QUESTIONS):
            user, host = source.choice(USERS), source.choice(HOSTS)
            operation, kind = source.choice(OPERATIONS), source.choice(TYPES)
            name = source.choice([*NAMES, "abcd", "c"])
            question = f"ask\t{user}\t{host}\t{operation:d}\t{kind:d}\t{name}"
            asked.append(question)
            caller = Caller(Principal("User", user), host)
            answers = (
                world.authorizer.allows(caller, operation, kind, name, logs_denial=False),
                world.authorizer.allows_some(caller, operation, kind),
            )
            ours.append((question, "".join("ny"[answer] for answer in answers)))
    theirs = _kafka("\n".join(asked) + "\n")
    assert len(theirs) == len(ours) == WORLDS * QUESTIONS
    assert [(question, answer) for (question, _), answer in zip(ours, theirs, strict=True)] == ours
    assert {answer for _, answer in ours} == {"yy", "yn", "ny", "nn"}


def _kafka(lines: str) -> list[str]:
    command = java_with_kafka(str(Path(__file__).with_name("KafkaAuthorizer.java")))
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line[2:] for line in done.stdout.splitlines() if line.startswith("= ")]
