"""ssl.principal.mapping.rules, by the cases of Kafka's SslPrincipalMapperTest and some more."""

import time

import pytest

from barnabas.base.errors import ConfigError
from barnabas.node.security.certificate_names import CertificateNames, NoRuleError

KAFKAS = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", "CN=alice,O=x", "CN=alice,O=x"),
        (KAFKAS, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (KAFKAS, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (KAFKAS, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        (KAFKAS, "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (KAFKAS, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        (r"RULE:^CN=(.*)\/(.*)$/$1\/$2/", "CN=a/b", "a/b"),
        ("RULE:CN=(.*),O=(.*)/$2.$1/", "CN=a,O=b", "b.a"),
        ("RULE:CN=(.*)/$1@$4/", "CN=a", "a@$4"),
        ("RULE:CN=(.*)/$12/", "CN=a", "a2"),
        (r"RULE:CN=(.*)/\$1$1/", "CN=a", "$1a"),
        ("RULE:CN=(?<who>.*)/${who}!/", "CN=a", "a!"),
        ("RULE:CN=(a)?b/[$1]/", "CN=b", "[]"),
        ("RULE:CN=x/y/,,DEFAULT", "CN=z", "CN=z"),
        (r"RULE:CN=(\w+)/$1/,DEFAULT", "CN=Zoë", "CN=Zoë"),
        ("RULE:(?i)cn=(ä)/$1/,DEFAULT", "CN=Ä", "CN=Ä"),
        ("  RULE:^CN=(.*?)$/$1/  ,  DEFAULT  ", "CN=a", "a"),
        ("RULE:CN=a,O=b/x/,DEFAULT", "CN=a,O=b", "x"),
    ],
)
def test_rules_turn_names_into_principals(rules: str, name: str, principal: str) -> None:
    assert CertificateNames(rules).name_of(name) == principal


def test_a_name_that_no_rule_takes_is_refused() -> None:
    with pytest.raises(
        NoRuleError, match=r"no rule of ssl\.principal\.mapping\.rules applies to CN=b"
    ):
        CertificateNames("RULE:CN=a/a/").name_of("CN=b")


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "RULE:CN=([a-z&&[^m]]*)/$1/",
        "DEFAULT/L",
        "DEFAULT/U",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/X",
        "RULE:^CN=(.*?,OU=ServiceUsers.*$/$1/L",
        "rule:^CN=(.*?)$/$1/L",
        "RULE:^CN=(.*?)$/$1/L/U",
    ],
)
def test_rules_that_make_no_sense_are_refused_at_the_start(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        CertificateNames(rules)


SIX_REPEATS = "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1/"
NESTED = "RULE:^CN=(([a-z]+ ?)+),O=x$/$1/"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (SIX_REPEATS, "CN=" + ",OU=,O=,L=,ST=" * 1000),
        (NESTED, "CN=" + "a" * 2000),
        ("RULE:^(?=CN)CN=(.*?),OU=(.*?),O=(.*?),L=(.*?)$/$1/", "CN=" + ",OU=,O=" * 1000),
        (r"RULE:^CN=(.*?)=(.*?)=(.*?)=\\1$/$1/", "CN=" + "=" * 5000),
    ],
    ids=["repeats", "nested", "look-ahead", "reference"],
)
def test_a_hostile_name_takes_no_time(rules: str, name: str) -> None:
    names = CertificateNames(f"{rules},DEFAULT")
    started_s = time.process_time()
    assert names.name_of(name) == name
    assert time.process_time() - started_s < 0.5


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("RULE:(?i)cn=(k)/$1/,DEFAULT", "CN=\u212a", "CN=\u212a"),
        ("RULE:CN=(.*),O=ö/é$1/", "CN=Zoë 😀,O=ö", "éZoë 😀"),
        ("RULE:CN=([à-ü]+)/$1/", "CN=éü", "éü"),
        ("RULE:CN=(a*)+(.*)/<$1>/", "CN=aaa", "<>"),
        (r"RULE:CN=(\xe9)/$1/", "CN=é", "é"),
        ("RULE:CN=(?!b)(.*)/$1/", "CN=" + "a" * 250, "a" * 250),
    ],
)
def test_names_become_what_javas_expressions_make_of_them(
    rules: str, name: str, principal: str
) -> None:
    assert CertificateNames(rules).name_of(name) == principal
