"""The help: every command has one, with an example, and the list of nouns says what the nouns say."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from rqlite_jobs import __version__
from rqlite_jobs.cli.main import SECTIONS, rqj

NOUNS = {name: line for names in SECTIONS.values() for name, line in names.items()}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command below `rqj`, by what is typed."""
    for noun in NOUNS:
        found = rqj.get_command(click.Context(rqj), noun)
        assert found is not None
        yield noun, found
        if isinstance(found, click.Group):
            for verb, command in found.commands.items():
                yield f"{noun} {verb}", command


COMMANDS = dict(commands())


def typed(*words: str) -> str:
    result = CliRunner().invoke(rqj, list(words), prog_name="rqj")
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("noun", NOUNS)
def test_the_list_of_nouns_says_what_the_noun_says(noun: str) -> None:
    assert COMMANDS[noun].get_short_help_str(limit=300) == NOUNS[noun]
    assert NOUNS[noun] in typed("--help")


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_a_help_with_an_example(words: str) -> None:
    command = COMMANDS[words]
    said = typed(*words.split(), "--help")
    assert said.startswith(f"Usage: rqj {words}")
    if not isinstance(command, click.Group):
        assert f"Example:\n    rqj {words.removesuffix(' ls')}" in said
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"rqj {words} {parameter.opts[0]} has no help"


@pytest.mark.parametrize("words", [words for words in COMMANDS if " " in words])
def test_every_reader_has_json(words: str) -> None:
    options = {option for parameter in COMMANDS[words].params for option in parameter.opts}
    assert "--json" in options


def test_lines_fit_the_terminal() -> None:
    for words in ("", *COMMANDS):
        assert max(map(len, typed(*words.split(), "--help").splitlines())) <= 80, words


def test_the_version() -> None:
    assert typed("--version") == f"rqj {__version__}\n"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["jbos"], "Did you mean `rqj jobs`?"),
        (["dead", "revve"], "Did you mean `rqj dead revive`?"),
        (["jobs", "ls", "--limt", "3"], "Did you mean --limit?"),
        (["server", "sttaus"], "Did you mean `rqj server status`?"),
    ],
)
def test_a_slip_is_answered_with_the_nearest(words: list[str], hint: str) -> None:
    result = CliRunner().invoke(rqj, words, prog_name="rqj")
    assert result.exit_code == 2
    assert hint in result.stderr
    assert len(result.stderr.splitlines()) == 2
