"""The form of the scripts: every one keeps to the house, and what is said of them is true.

Read from their text alone; luacheck looks for undefined and unused names in tests/house.
"""

import re
from pathlib import Path

import pytest

from rqlite_jobs.keys import _DERIVED, _FIXED, NAMESPACES, Keys
from rqlite_jobs.script import Script, script, verbs
from tests.lua.source import (
    LUA,
    READS,
    WRITES,
    arguments,
    assembled,
    bare,
    family,
    free_names,
    functions,
    is_binding,
    table,
)

PARTS = sorted(path.name for path in (LUA / "lib").glob("*.lua"))
FILES = [f"{verb}.lua" for verb in verbs()] + [f"lib/{part}" for part in PARTS]
STORES_PAYLOADS = {"enqueue", "push"}
READERS = {"changes", "crew", "history", "holders", "look", "page", "survey"}

KEY_LINE = re.compile(r"local (\w+)_(key|prefix) += KEYS\[(\d+)\] +-- (\w+) +(\S.*)")
ARG_LINE = re.compile(r"local (\w+)(?:, (\w+))? += [^-]*?\bARGV(?:\[(\d+)\]|, (\d+))[^-]*-- \S.*")
INCLUDE_LINE = re.compile(r" *--- @include lib/(\w+)\.lua")
CONSTANT_LINE = re.compile(r"local [A-Z_]+(?:, [A-Z_]+)* = \d+(?:, \d+)*(?: +-- .*)?")


def text_of(file: str) -> str:
    return (LUA / file).read_text("utf-8")


def block_of(verb: str) -> list[str]:
    """The lines between a script's documentation and its parts: the binding block and its constants."""
    lines = text_of(f"{verb}.lua").splitlines()[1:]
    first = next(at for at, line in enumerate(lines) if not line.startswith("--"))
    last = next(at for at, line in enumerate(lines) if at > first and not re.match(r"local | {20,}--", line))
    return lines[first:last]


# The first line.


@pytest.mark.parametrize("verb", verbs())
def test_the_first_line_says_what_it_does_to_a_full_server(verb: str) -> None:
    first = text_of(f"{verb}.lua").splitlines()[0]
    if verb in STORES_PAYLOADS:
        assert first == "#!lua"
    elif verb in READERS:
        assert first == "#!lua flags=no-writes"
    else:
        assert first == "#!lua flags=allow-oom"
    assert script(verb).plain_text == "--" + script(verb).text


@pytest.mark.parametrize("verb", verbs())
def test_only_what_writes_writes(verb: str) -> None:
    assert bool(assembled(verb).written()) == (verb not in READERS)


@pytest.mark.parametrize("verb", verbs())
def test_what_stores_payloads_stores_new_records(verb: str) -> None:
    stores = "record.text" in assembled(verb).reached or "record.text(" in assembled(verb).functions[""].body
    stores = stores or "local text = '1\\0' .. queue" in text_of(f"{verb}.lua")  # by hand, in the short way
    # `revive` writes records that are there, and makes them shorter.
    assert stores == (verb in STORES_PAYLOADS or verb == "revive")


# Documentation and bindings.


@pytest.mark.parametrize("verb", verbs())
def test_it_begins_with_what_it_does_and_answers(verb: str) -> None:
    said = []
    for line in text_of(f"{verb}.lua").splitlines()[1:]:
        if not line.startswith("--"):
            break
        said.append(line)
    assert re.fullmatch(r"--- [A-Z].{10,}", said[0])
    assert all(re.match(r"-- +\S", line) for line in said[1:])
    prose = " ".join(line.lstrip("- ") for line in said)
    assert re.match(r"[A-Z][^.]+[.:]", prose)
    assert re.search(r"\bAnswers (with )?\S", prose), "it does not say what it answers"
    assert script(verb).summary == said[0].removeprefix("--- ")


@pytest.mark.parametrize("verb", verbs())
def test_the_binding_block(verb: str) -> None:
    keys, next_arg = 0, 1
    seen_argument = False
    for line in block_of(verb):
        if key := KEY_LINE.fullmatch(line):
            keys += 1
            assert int(key[3]) == keys, f"keys are bound in order: {line}"
            assert not seen_argument, f"keys come before arguments: {line}"
        elif argument := ARG_LINE.fullmatch(line):
            seen_argument = True
            assert int(argument[3] or argument[4]) == next_arg, f"arguments are bound in order: {line}"
            assert bool(argument[2]) == bool(argument[4])
            next_arg = 1000 if argument[4] else next_arg + 1  # behind a list there is nothing more
        else:
            assert CONSTANT_LINE.fullmatch(line) or re.match(r" {20,}-- \S", line), (
                f"this binds nothing: {line}"
            )
    assert keys == len(script(verb).bindings) > 0


@pytest.mark.parametrize("verb", verbs())
def test_nothing_below_the_block_mentions_keys_or_argv(verb: str) -> None:
    block = set(block_of(verb))
    below = [
        line for line in bare(text_of(f"{verb}.lua")).splitlines() if re.search(r"\b(KEYS|ARGV)\b", line)
    ]
    assert len(below) == sum("KEYS[" in line or "ARGV" in line for line in block)


@pytest.mark.parametrize("part", PARTS)
def test_no_part_mentions_keys_or_argv(part: str) -> None:
    assert not re.search(r"\b(KEYS|ARGV)\b", bare(text_of(f"lib/{part}")))


def test_a_binding_says_the_same_wherever_it_is() -> None:
    said: dict[str, set[str]] = {}
    for verb in verbs():
        for line in block_of(verb):
            if key := KEY_LINE.fullmatch(line):
                said.setdefault(f"{key[1]}_{key[2]}", set()).add(f"{key[4]} {key[5]}")
    assert {name: texts for name, texts in said.items() if len(texts) > 1} == {}


@pytest.mark.parametrize("verb", verbs())
def test_an_argument_has_one_meaning(verb: str) -> None:
    """A name that two scripts bind is bound by the same conversion: `now_ms` is a number everywhere."""
    for other in verbs():
        mine, theirs = conversions(verb), conversions(other)
        assert {name: mine[name] for name in mine.keys() & theirs} == {
            name: theirs[name] for name in mine.keys() & theirs
        }


def conversions(verb: str) -> dict[str, str]:
    found = (re.match(r"local (\w+) += (\w+|)\(?ARGV\[", line) for line in block_of(verb))
    return {one[1]: one[2] for one in found if one}


# The dictionary.


def test_the_dictionary_holds_the_keys_of_keys_py() -> None:
    assert {family(key) for key in table()} == _FIXED | _DERIVED
    assert {key for key in table() if ":" not in key} == _FIXED
    assert f"`{NAMESPACES}`" in text_of("README.md")


def test_the_dictionary_holds_the_keys_of_the_scripts() -> None:
    bound = {name for verb in verbs() for name in script(verb).bindings}
    expected = {f"{name}_key" for name in _FIXED} | {f"{name}_prefix" for name in _DERIVED} | {"running_key"}
    assert bound == expected
    for verb in verbs():
        names = Keys("a").of_script(script(verb).bindings, "w").names
        assert all(name.startswith("rqj:{a}:") for name in names)
        assert len(set(names)) == len(names)


def test_the_dictionary_has_the_types_of_the_bindings() -> None:
    plural = {"lists": "list", "hashes": "hash", "zsets": "zset", "strings": "string"}
    types = {family(key): row[0] for key, row in table().items()}
    for verb in verbs():
        for line in block_of(verb):
            if key := KEY_LINE.fullmatch(line):
                assert (key[4] in plural) == (key[2] == "prefix"), line
                assert plural.get(key[4], key[4]) == types[key[1]], line
                assert key[2] == "key" or key[5].startswith(".. "), line


def test_the_dictionary_says_who_writes() -> None:
    writers: dict[str, set[str]] = {family(key): set() for key in table()}
    for verb in verbs():
        for name in assembled(verb).written():
            writers[name.rpartition("_")[0]].add(verb)
    assert {family(key): set(row[3].split()) for key, row in table().items()} == writers
    assert all(row[3].split() == sorted(row[3].split()) for row in table().values())


def test_every_key_has_a_bound_and_names_settings_that_exist() -> None:
    from rqlite_jobs.config import Settings

    known = {name.removesuffix("_ms") for name in Settings.__dataclass_fields__}
    for key, row in table().items():
        assert row[2].strip(), key
        assert set(re.findall(r"`([a-z]+_[a-z_]+)`", row[2])) <= known, key


# The commands.


@pytest.mark.parametrize("verb", verbs())
def test_every_command_is_known_and_its_key_was_given(verb: str) -> None:
    for command, keys in assembled(verb).commands():
        assert command in WRITES | READS, f"{command} is neither a read nor a write here"
        assert command == "TIME" or keys, f"the key of a {command} comes from no binding"


@pytest.mark.parametrize("file", FILES)
def test_what_is_not_used(file: str) -> None:
    text = bare(text_of(file))
    used = set(re.findall(r"[A-Za-z_]\w*", text)) | set(re.findall(r"'([A-Z]+)'", text))
    assert used.isdisjoint({"cmsgpack", "struct", "bit", "sha1hex", "os", "io", "loadstring", "setmetatable"})
    assert set(re.findall(r"'([A-Z]+)'", text)).isdisjoint(
        {"KEYS", "SCAN", "HSCAN", "SSCAN", "ZSCAN", "SORT", "EVAL"}
    )


@pytest.mark.parametrize("file", FILES)
def test_cjson_is_for_lanes_only(file: str) -> None:
    for line in bare(text_of(file)).splitlines():
        if "cjson." in line:
            assert re.search(
                r"cjson\.decode\((kept|answers)\)|lane\.keep\(.*cjson\.encode\(answers?\)\)", line
            ), line


@pytest.mark.parametrize("file", FILES)
def test_times_become_text_through_clock_text(file: str) -> None:
    for line in bare(text_of(file)).splitlines():
        naked = re.sub(r"clock\.text\((?:[^()]|\([^()]*\))*\)", "", line)
        assert not re.search(r"\.\. [\w.]+_(ms|us)\b(?!\w)", naked), f"a number is joined to a text: {line}"
        for call in re.finditer(r"(?:redis\.p?call|batch\.send)\(", naked):
            sent = arguments(naked + ")", call.end() - 1)
            assert not any(re.fullmatch(r"[\w.]*_(ms|us)", one) for one in sent), f"a number is sent: {line}"


# The parts.


@pytest.mark.parametrize("part", PARTS)
def test_a_part_expects_what_it_says(part: str) -> None:
    text = text_of(f"lib/{part}")
    header = " ".join(line.lstrip("- ") for line in text.splitlines() if line.startswith("--"))
    (said,) = re.findall(r"Expects: (.*?)\.(?: |$)", header)
    names = re.sub(r"\band\b|,", " ", said).split()
    expected = set() if said == "nothing" else {name.removeprefix("lib/") for name in names}
    assert free_names(text) - {Path(part).stem} == expected


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_one_table_of_its_own_name(part: str) -> None:
    name = Path(part).stem
    text = text_of(f"lib/{part}")
    assert re.match(r"--- [A-Z].{10,}", text)
    assert re.search(rf"^local {name} = {{", text, re.MULTILINE)
    assert INCLUDE_LINE.search(text) is None, "a script names all its parts itself"
    public = re.findall(r"^function (\w+)\.", text, re.MULTILINE)
    assert set(public) == {name}
    assert not re.search(r"^return\b", text, re.MULTILINE)


@pytest.mark.parametrize("file", FILES)
def test_every_function_is_documented_and_takes_five_arguments_at_most(file: str) -> None:
    lines = text_of(file).splitlines()
    for at, line in enumerate(lines):
        head = re.match(r" *(?:local )?function ([\w.]+)\(([^)]*)\)", line)
        if head:
            above = at - 1
            while re.match(r" *--( |$)", lines[above]):
                above -= 1
            assert lines[above].lstrip().startswith("--- "), f"{head[1]} says nothing of itself"
            limit = 7 if head[1] == "settle.other" else 5
            assert len(re.findall(r"\w+", head[2])) <= limit, f"{head[1]} takes more than {limit}"


@pytest.mark.parametrize("verb", verbs())
def test_parts_come_after_what_they_expect(verb: str) -> None:
    known = set(script(verb).bindings)
    for line in text_of(f"{verb}.lua").splitlines():
        if part := INCLUDE_LINE.fullmatch(line):
            name = part[1]
            assert name not in known, f"{name} is taken in twice"
            missing = free_names(text_of(f"lib/{name}.lua")) - known - {name}
            assert {one for one in missing if one in parts() or is_binding(one)} == set(), (
                f"{name} lacks them"
            )
            known.add(name)
        elif bound := re.findall(r"^local ([\w, ]+) =", line):
            known |= set(re.findall(r"\w+", bound[0]))


def parts() -> set[str]:
    return {Path(part).stem for part in PARTS}


@pytest.mark.parametrize("verb", verbs())
def test_every_part_is_used(verb: str) -> None:
    taken = set(INCLUDE_LINE.findall(text_of(f"{verb}.lua")))
    own = bare(text_of(f"{verb}.lua"))
    used = {name for name in taken if re.search(rf"\b{name}\.", own)}
    while more := {one for name in used for one in free_names(text_of(f"lib/{name}.lua")) & taken} - used:
        used |= more
    assert used == taken


@pytest.mark.parametrize("file", FILES)
def test_lines_are_short_and_end_in_nothing(file: str) -> None:
    for line in text_of(file).splitlines():
        assert len(line) <= 120
        assert line == line.rstrip()
        assert "\t" not in line


# The reader of sources itself.


def test_the_reader_would_see_a_write_in_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    for line in (
        "redis.call('HDEL', jobs_key, 'a')",
        "snapshot.drop(jobs_key)",
        "redis.pcall(word, jobs_key)",
    ):
        text = f"#!lua\nlocal jobs_key = KEYS[1]\nlocal snapshot, word = {{}}, 'x'\n{HELPERS}{line}\n"
        monkeypatch.setattr("tests.lua.source.script", lambda verb, text=text: fake(verb, text))
        if "word" in line:
            with pytest.raises(ValueError, match="not in list"):
                assembled.__wrapped__("some").written()
        else:
            assert assembled.__wrapped__("some").written() == {"jobs_key"}


HELPERS = """
function snapshot.drop(key)
  local name = key .. ':' .. 'x'
  redis.call('DEL', 'nothing', name)
end

function snapshot.unused()
  redis.call('SET', jobs_key)
end

"""


def fake(verb: str, text: str) -> Script:
    return Script(verb, (), text, "", ("jobs_key",), text, "")


def test_the_reader_takes_functions_apart() -> None:
    found = functions(
        bare("local a = 1\n\nlocal function b(c, d)\n  e('-- x') -- y\nend\n\nfunction f.g() h() end\n")
    )
    assert {name: one.parameters for name, one in found.items()} == {"": [], "b": ["c", "d"], "f.g": []}
    assert found["b"].body == "\n  e('') \nend\n"
