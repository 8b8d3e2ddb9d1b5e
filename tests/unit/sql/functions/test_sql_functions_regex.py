"""Functions of regular expressions: cases of ksqlDB's own tests, and Java's dialect."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from barnabas.java import regex as java_regex
from barnabas.java.regex import JavaPattern, compile_java, find_all
from barnabas.java.regex_characters import JavaError, PatternError
from barnabas.java.regex_linear import STEPS_HARMLESS, STEPS_MAX
from barnabas.sql.errors import EvaluationError
from support.sql_calls import call

CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("REGEXP_EXTRACT", ("test.", "some_test_string"), "test_"),
    ("REGEXP_EXTRACT", ("test.", "anothertest"), None),
    ("REGEXP_EXTRACT", ("(.*) (.*)", "steven zhang", 2), "zhang"),
    ("REGEXP_EXTRACT", ("(.*) (.*)", "agavra", 2), None),
    ("REGEXP_EXTRACT", ("(.*) (.*)", "steven zhang", 3), None),
    ("REGEXP_EXTRACT", ("(a)|(b)", "b", 1), None),
    ("REGEXP_EXTRACT", ("e", None), None),
    ("REGEXP_EXTRACT", ("e", "e", None), None),
    ("REGEXP_EXTRACT", ("(()", "e"), EvaluationError),
    ("REGEXP_EXTRACT", ("(e)", "e", -1), EvaluationError),
    ("REGEXP_EXTRACT_ALL", ("test.", "some_test_string_testabab"), ["test_", "testa"]),
    ("REGEXP_EXTRACT_ALL", ("test.", "nothing"), []),
    (
        "REGEXP_EXTRACT_ALL",
        (r"(\w+) (\w*)", "apurva mehta agavra ", 2),
        ["mehta", ""],
    ),
    ("REGEXP_EXTRACT_ALL", ("[AEIOU].{4}", "usEr nAmE 1308"), ["Er nA", "E 130"]),
    ("REGEXP_EXTRACT_ALL", ("(a)(b)?", "ab a", 2), ["b", None]),
    ("REGEXP_EXTRACT_ALL", ("e", "test string", 3), None),
    ("REGEXP_EXTRACT_ALL", ("a??", "aa"), ["", "", ""]),  # Python also finds "a"
    ("REGEXP_EXTRACT_ALL", ("(()", "test string"), EvaluationError),
    ("REGEXP_EXTRACT_ALL", (None, ""), None),
    ("REGEXP_REPLACE", ("baababaa", "(ab)+", "cat"), "bacataa"),
    ("REGEXP_REPLACE", ("baabbabaa", "(ab)+", "cat"), "bacatbcataa"),
    ("REGEXP_REPLACE", ("abc", "", "n"), "nanbncn"),
    ("REGEXP_REPLACE", ("baac", "a*", "-"), "-b--c-"),
    ("REGEXP_REPLACE", ("ab", "a??", "-"), "-a-b-"),
    ("REGEXP_REPLACE", ("barbar", "bar$", "cat"), "barcat"),
    ("REGEXP_REPLACE", ("foobar", "o", ""), "fbar"),
    ("REGEXP_REPLACE", ("foobar", "(o+)(?<end>b)", "${end}<$1>$0"), "fb<oo>oobar"),
    ("REGEXP_REPLACE", ("foobar", "(o)", "$11\\$\\\\"), "fo1$\\o1$\\bar"),
    ("REGEXP_REPLACE", ("ab", "(x)?b", "[$1]"), "a[]"),
    ("REGEXP_REPLACE", ("foobar", "o", "$1"), JavaError),
    ("REGEXP_REPLACE", ("foobar", "o", "${x}"), JavaError),
    ("REGEXP_REPLACE", ("foobar", "o", "$"), JavaError),
    ("REGEXP_REPLACE", ("foobar", "o", "\\"), JavaError),
    ("REGEXP_REPLACE", ("foobar", "(()", "bar"), EvaluationError),
    ("REGEXP_REPLACE", ("foobar", None, "bar"), None),
    ("REGEXP_SPLIT_TO_ARRAY", ("aabcda", "(ab|cd)"), ["a", "", "a"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("zxy", "(ab|cd)"), ["zxy"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("", "z"), [""]),
    ("REGEXP_SPLIT_TO_ARRAY", ("", ""), [""]),
    ("REGEXP_SPLIT_TO_ARRAY", ("x-y", ""), ["x", "-", "y"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("x-y", "."), ["", "", "", ""]),
    ("REGEXP_SPLIT_TO_ARRAY", ("a-b-c", "^.."), ["", "b-c"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("-A-B-", "-"), ["", "A", "B", ""]),
    ("REGEXP_SPLIT_TO_ARRAY", ("AB", "^"), ["AB"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("AB", "$"), ["AB"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("axb", "x*"), ["a", "", "b"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("abab", "(?=b)"), ["a", "ba", "b"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("--A--A", "-"), ["", "", "A", "", "A"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("aababa", "(ab)+"), ["a", "a"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("abcd", "(()"), EvaluationError),
    ("REGEXP_SPLIT_TO_ARRAY", (None, "a"), None),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_value(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    if isinstance(expected, type):
        with pytest.raises(expected):
            call(name, *arguments)
    else:
        assert call(name, *arguments) == expected


DIALECT: list[tuple[str, str, list[str]]] = [
    # the same syntax in Java and Python
    ("a|bc", "abc", ["a", "bc"]),
    ("(?:ab)+?", "abab", ["ab", "ab"]),
    ("a{2}", "aaaaa", ["aa", "aa"]),
    ("a{1,}b", "aab", ["aab"]),
    ("a++b", "aab", ["aab"]),
    ("a*+a", "aaa", []),
    ("(?>a|ab)c", "abc", []),
    (r"\.\-\]}", ".-]}", [".-]}"]),
    (r"(a)\1", "aaa", ["aa"]),
    # ends of lines
    (".+", "a\r\nb\u2028c\u0085d", ["a", "b", "c", "d"]),
    ("(?s).+", "a\nb", ["a\nb"]),
    ("(?d).+", "a\rb\nc", ["a\rb", "c"]),
    ("a$", "a\r\n", ["a"]),
    ("a\r$", "a\r\n", []),
    ("a$", "a\u2028", ["a"]),
    ("a$", "a\n\n", []),
    ("(?m)^.$", "a\rb\r\nc", ["a", "b", "c"]),
    ("(?m)^", "a\n", [""]),
    ("(?dm)^.$", "a\nb", ["a", "b"]),
    (r"a\Z", "a\n", ["a"]),
    (r"a\z", "a\n", []),
    (r"\Aa", "aa", ["a"]),
    (r"\R", "\r\n\n", ["\r\n", "\n"]),
    # letters and sets
    (r"\d+", "12٣", ["12"]),
    (r"\w+", "aé_1", ["a", "_1"]),
    (r"(?U)\w+", "aé_1", ["aé_1"]),
    (r"\W", "aé", ["é"]),
    (r"\s+", " \t\u00a0", [" \t"]),
    (r"\h+", " \t\u00a0\n", [" \t\u00a0"]),
    (r"\v", "a\n", ["\n"]),
    (r"[\H]", " a", ["a"]),
    (r"\bé\b", "é x", ["é"]),
    (r"\B", "", [""]),
    (r"\p{Lower}+", "abC", ["ab"]),
    (r"\p{Lu}\P{Lu}", "ÄbC", ["Äb"]),
    (r"\pL+", "aé1", ["aé"]),
    (r"\p{IsAlphabetic}+", "aé1", ["aé"]),
    (r"\p{javaUpperCase}", "aB", ["B"]),
    (r"\p{IsGreek}+", "abγδ", ["γδ"]),
    (r"\p{script=Han}", "a好", ["好"]),
    (r"\p{gc=Nd}", "a٣", ["٣"]),
    (r"\p{Punct}", "a!", ["!"]),
    (r"\p{javaWhitespace}", "\u00a0\u2028", ["\u2028"]),
    (r"[^\p{L}]", "a1", ["1"]),
    # classes
    ("[a-c[x-z]]+", "axd", ["ax"]),
    ("[a-z&&[def]]+", "abde", ["de"]),
    ("[a-z&&[^bc]]+", "abcd", ["a", "d"]),
    ("[a-z&&[^m-p]&&[^b]]+", "abmq", ["a", "q"]),
    ("[^a-c]", "ad", ["d"]),
    ("[^a-z&&c]", "c", []),
    ("[]a]+", "]a", ["]a"]),
    ("[a-]+", "a-b", ["a-"]),
    (r"[\]\-\\]+", r"]-\a", [r"]-\ "[:-1]]),
    (r"[\x41-C]+", "ABCD", ["ABC"]),
    ("[a[", "a", ["error"]),
    # escapes
    (r"\x41\u0042\x{43}\0104", "ABCD", ["ABCD"]),
    (r"\ud83d\ude00", "😀", ["😀"]),
    (r"\cA\t\e\a\f", "\x01\t\x1b\x07\x0c", ["\x01\t\x1b\x07\x0c"]),
    (r"\Qa.b\E.", "a.bc", ["a.bc"]),
    (r"\Qa.b", "a.b", ["a.b"]),
    (r"[\Q]^\E]+", "]^a", ["]^"]),
    (r"\\Q", "\\Q", ["\\Q"]),
    (r"\N{LATIN SMALL LETTER A}", "a", ["a"]),
    # flags
    ("(?i)ab", "AbaB", ["Ab", "aB"]),
    ("a(?i)b|c", "aBC", ["aB", "C"]),
    ("(a(?i)b)c", "aBc", ["aBc"]),
    ("(a(?i)b)c", "aBC", []),
    ("(?i:a)b", "AbAB", ["Ab"]),
    ("(?i)a(?-i)b", "AbAB", ["Ab"]),
    ("(?i)é", "É", []),
    ("(?iu)é", "É", ["É"]),
    ("(?i)[^a]", "Ab", ["b"]),
    (r"(?i)(a)\1", "aA", ["aA"]),
    ("(?x) a b # comment\nc", "abc", ["abc"]),
    ("(?x)[a b]+", "a b", ["a", "b"]),
    # groups
    ("(?<first>a)(?<second>b)", "ab", ["ab"]),
    (r"(?<x>a)\k<x>", "aa", ["aa"]),
    (r"(a)\12", "aa2", ["aa2"]),
    (r"(a\1)", "aa", []),
    (r"\1(a)", "aa", []),
    ("(?<=a|bc)x", "axbcxx", ["x", "x"]),
    ("(?<!a|bc)x", "axbcxx", ["x"]),
    ("(?<=ab{1,3}c?)x", "axabxabbcxabbbbx", ["x", "x"]),
    ("(?<!ab?)x", "axabxbx", ["x"]),
    ("(?<=(?:a|b){2})x", "axabx", ["x"]),
    ("(?=a)*a", "a", ["a"]),
    ("^*a", "ba", ["a"]),
]


@pytest.mark.parametrize(("pattern", "text", "matches"), DIALECT)
def test_dialect(pattern: str, text: str, matches: list[str]) -> None:
    if matches == ["error"]:
        with pytest.raises(PatternError):
            compile_java(pattern)
    else:
        assert [match[0] for match in find_all(compile_java(pattern), text)] == matches


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [("((a)b?|.)*+", "AcAaA_", ("_", "a")), ("((a)b?|[abc])++", "abbA", ("b", "a"))],
)
def test_groups_in_possessive_quantifiers(pattern: str, text: str, groups: tuple[str, ...]) -> None:
    """Python's own possessive quantifiers raise SystemError here."""
    found = compile_java(pattern).over(text)(0)
    assert found is not None
    assert tuple(found[group] for group in (1, 2)) == groups


@pytest.mark.parametrize(
    "pattern",
    [
        *["(", ")", "(a", "a)", "[a", "[", "*a", "a**", "a{", "{x}", "a{,3}", "a{3,2}", "+"],
        *["\\", r"\y", r"\p{Nope}", r"\p", r"\x4", r"\u12", r"\x{110000}", r"\k<none>", r"\kx"],
        *[
            "(?<1a>x)",
            "(?<a>x)(?<a>y)",
            "(?#c)",
            "(?z)",
            "[b-a]",
            r"[a-\d]",
            "(?<=a*)b",
            r"\G",
            r"\X",
        ],
    ],
)
def test_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_java(pattern)


def test_patterns_are_kept() -> None:
    assert compile_java("kept?") is compile_java("kept?")


def spans(pattern: JavaPattern, text: str) -> list[tuple[object, ...]]:
    return [
        (m.start(), m.end(), *(m[group] for group in range(pattern.groups + 1)))
        for m in find_all(pattern, text)
    ]


@pytest.fixture
def linear_always(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = {STEPS_HARMLESS: -1, STEPS_MAX: 1_000_000}
    monkeypatch.setattr(java_regex, "length_max", lambda text, steps: lengths[steps])


@pytest.mark.usefixtures("linear_always")
@pytest.mark.parametrize(("pattern", "text", "matches"), DIALECT)
def test_the_linear_engine_finds_the_same(pattern: str, text: str, matches: list[str]) -> None:
    if matches != ["error"]:
        found = JavaPattern(pattern)
        assert [match[0] for match in find_all(found, text)] == matches


ATOMS = ("a", "b", ".", "[ab]", "[^a]", r"\d", "é", r"\s", "(a|b)", "(?:ab|a)", "(b)", r"\b", "^")


@pytest.mark.usefixtures("linear_always")
@pytest.mark.parametrize("seed", range(300))
def test_both_engines_agree(seed: int) -> None:
    random = Random(seed)
    pieces = [
        random.choice(ATOMS) + random.choice(("", "", "*", "+", "?", "*?", "{1,2}"))
        for _ in range(random.randrange(1, 5))
    ]
    java = "".join(pieces) + random.choice(("", "$", "|b$", "$|a"))
    text = "".join(random.choice("aab1é\n ") for _ in range(random.randrange(12)))
    text += random.choice(("", "\n", "\r\n", "\u2028"))
    pattern = JavaPattern(java)
    plain = JavaPattern(java)
    plain.__dict__["_harmless_length"] = 1000
    assert spans(pattern, text) == spans(plain, text), (java, text)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "^(a|aa)+$", r"([a-z]+\s?)*!", "(.*a){20}b", "(x|a+)+?b", ".*.*.*.*.*=", "a+b"],
)
@pytest.mark.parametrize("end", ["!", "!\n", "é"])
def test_a_long_text_takes_no_longer_than_it_is(pattern: str, end: str) -> None:
    assert call("REGEXP_EXTRACT", pattern, "a" * 20_000 + end) in (None, "a" * 20_000 + "!")


@pytest.mark.parametrize("pattern", ["(a*)*$", r"(a+)+\1b", "(?=(a|a)+b)"])
def test_what_might_take_for_ever_is_refused(pattern: str) -> None:
    assert call("REGEXP_REPLACE", "aaa", pattern, "") is not None
    with pytest.raises(JavaError, match="may take this regular expression for ever"):
        call("REGEXP_REPLACE", "a" * 100 + "!", pattern, "")
