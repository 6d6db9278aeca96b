"""`rqj demo`: the main job, done before your eyes."""

import click

from rqlite_jobs.cli.groups import example


@click.command(
    help="""See the main job done, on a server of its own.

Starts a server and workers of the bookstore example in a temporary folder, and shows: a thousand sales that
need ten runs; jobs that fail, are tried again, and die; a worker that is killed and its job done by another.
It takes some 15 s, touches no data of yours, and leaves nothing behind. Exit code 0: all of it was seen.
"""
    + example("rqj demo")
)
def command() -> None:
    """Tell the story on a stage of its own."""
    from rqlite_jobs.cli.narrator import Narrator
    from rqlite_jobs.cli.stage import Stage
    from rqlite_jobs.cli.story import Story

    narrator = Narrator()
    with Stage(narrator) as stage:
        Story(stage, narrator).tell()
    narrator.end(f"All of this was seen, in {stage.elapsed_s:.0f} s. Nothing of it is left running.")
