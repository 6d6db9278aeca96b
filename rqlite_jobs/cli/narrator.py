"""What `rqj demo` says: chapters, lines, and what it waits for at the moment."""

import sys
from typing import Any


class Narrator:
    """Tells a story in a terminal; where there is none, the same lines without colours and without a spinner.

    The library that draws is loaded when one is made.
    """

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(file=sys.stdout, highlight=False, markup=False, soft_wrap=True)
        self._status: Any = None
        self._chapters = 0

    def chapter(self, title: str) -> None:
        """Begin the next part."""
        self._chapters += 1
        self._line("")
        self._line(f"{self._chapters}  {title}", "bold")

    def say(self, line: str, style: str = "") -> None:
        """Say one thing that was done or seen."""
        self._line(f"   {line}", style)

    def command(self, line: str) -> None:
        """Show the command that is typed next."""
        self._line("")
        self._line(f"   $ {line}", "bold")

    def end(self, line: str) -> None:
        """Say the last thing."""
        self._line("")
        self._line(line, "bold green")

    def busy(self, doing: str) -> None:
        """Show what is waited for, until the next `quiet`. Costs nothing where there is no terminal."""
        if not self._console.is_terminal:
            return
        if self._status is None:
            utf = self._console.encoding.startswith("utf")
            self._status = self._console.status("", spinner="dots" if utf else "line")
            self._status.start()
        self._status.update(f"{doing}")

    def quiet(self) -> None:
        """Wait for nothing any more; others may write to the terminal now."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        sys.stdout.flush()

    def _line(self, line: str, style: str = "") -> None:
        self._console.print(line, style=style or None)
        if not self._console.is_terminal:
            sys.stdout.flush()
