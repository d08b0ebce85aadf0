"""The registry as TOML: it reads back what it wrote, and says where a file is wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.models import Connection, Tool
from effects.tools import snapshot
from reconcile.registry import toml_file
from reconcile.registry.toml_file import FIELDS, CannotRead, read, write

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
lines = st.lists(texts, max_size=4).map("\n".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
rules = st.fixed_dictionaries(
    {},
    optional={
        "volatile": st.lists(texts, min_size=1, max_size=3),
        "business": st.lists(texts, min_size=1, max_size=3),
        "defaults": st.dictionaries(texts, texts, min_size=1, max_size=3),
    },
)
tools = st.builds(
    Tool,
    name=texts.filter(bool),
    effect_class=st.sampled_from(["read", "keyed_write", "unkeyed_write"]),
    note=lines,
    owner=texts,
    contract=texts,
    key_name=texts,
    window_seconds=st.none() | st.integers(0, 10**9),
    margin_seconds=st.integers(0, 10**9),
    release_lapse_minutes=st.floats(0, 1e6),
    server_working_seconds_max=st.none() | st.integers(0, 10**9),
    sends_offline=st.booleans(),
    connection=st.none() | st.builds(Connection, name=texts.filter(bool)),
    lookup=st.dictionaries(texts, values, max_size=3),
    argument_rules=rules,
    summary=texts,
    runbook=lines,
)


@given(st.lists(tools, max_size=3, unique_by=lambda tool: tool.name))
@settings(deadline=None, max_examples=60)
def test_what_is_written_reads_back_the_same_whatever_is_in_it(made: list[Tool]) -> None:
    text = write(made)
    assert write(reversed(made)) == text
    by_name = {tool.name: tool for tool in made}
    entries = read(text)
    assert [entry.name for entry in entries] == sorted(by_name)
    for entry in entries:
        said = snapshot(by_name[entry.name])
        assert entry.faults == ()
        assert entry.values == {name: said[name] for name in FIELDS}
        assert text.splitlines()[entry.line - 1] == "[[tool]]"


HEAD = "format = 1\n"


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("format = 1\n[[tool]\n", 2, "This is no TOML"),
        ("format = 2\n", 1, "has to say format = 1"),
        ("", 0, "has to say format = 1"),
        ("format = 1\ntools = []\n", 2, "tools is no name here. Did you mean tool?"),
        ("format = 1\n[tool]\nname = 'a'\n", 2, "in two brackets"),
        (HEAD + "x" * toml_file.BYTES_MAX, 0, "(BYTES_MAX)"),
        (HEAD + "[[tool]]\nname = 'a'\n" * (toml_file.TOOLS_MAX + 1), 0, "(TOOLS_MAX)"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused_whole(text: str, line: int, sentence: str) -> None:
    with pytest.raises(CannotRead) as fault:
        read(text)
    assert sentence in fault.value.reason
    assert fault.value.line == line


@pytest.mark.parametrize(
    ("body", "line", "sentence"),
    [
        ("owner = 'x'", 2, "The tool has no name."),
        ("name = 'a'\nownr = 'x'", 4, "ownr is no name here. Did you mean owner?"),
        ("name = 'a'\nregistered = true", 4, "registered is no name here."),
        ("name = 'a'\nmargin_seconds = '2 m'", 4, 'should be a whole number, and is "2 m"'),
        ("name = 'a'\nmargin_seconds = true", 4, "should be a whole number, and is true"),
        ("name = 'a'\nhold_in_turn = 1", 4, "should be true or false, and is 1"),
        ("name = 'a'\nwindow_seconds = 'none'", 4, 'seconds or "not published"'),
        ("name = 'a'\nlookup = '[1]'", 4, "the text of one JSON object"),
        ("name = 'a'\nargument_rules = {busines = ['x']}", 4, "Did you mean business?"),
        ("name = 'a'\nargument_rules = {business = 'x'}", 4, "should be a list of names"),
        ("name = 'a'\nnote = '''\n[[tool]]\nowner = 1\n'''\nowner = 1", 8, "owner: should be"),
        ("name = 'a'\n[[tool]]\nname = 'a'", 4, "a stands in the file twice."),
    ],
)
def test_a_tool_that_cannot_be_taken_says_the_line_and_the_reason(
    body: str, line: int, sentence: str
) -> None:
    faults = [fault for entry in read(f"{HEAD}[[tool]]\n{body}\n") for fault in entry.faults]
    ((found, said),) = faults
    assert sentence in said
    assert found == line
