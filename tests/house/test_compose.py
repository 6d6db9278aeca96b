"""docker-compose.yml beside what README says of it, and beside what it starts."""

import ast
import re
import shlex
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
README = CHECKOUT / "README.md"
PROFILED = "profiles"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The compose file."""
    loaded: dict[str, Any] = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text("utf-8"))
    return loaded


def published(service: dict[str, Any]) -> set[int]:
    """The ports of a service that can be reached from the host."""
    return {int(port.rsplit(":", 2)[-2]) for port in service.get("ports", [])}


def readme_commands() -> list[list[str]]:
    """Every `docker compose ...` that README tells to type, in words."""
    found = re.findall(r"docker compose[^`\n#]*", README.read_text("utf-8"))
    return [shlex.split(command) for command in found if len(command.split()) > 2]


def test_the_services(compose: dict[str, Any]) -> None:
    by_default = {name for name, service in compose["services"].items() if PROFILED not in service}
    assert by_default == {"server", "worker"}
    assert {
        name: service[PROFILED] for name, service in compose["services"].items() if PROFILED in service
    } == {"cluster": ["cluster"]}
    for name, service in compose["services"].items():
        assert "build" not in service, f"{name} wants an image of its own"
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name} publishes {port} beyond this machine"


@pytest.mark.parametrize("name", ["server", "cluster"])
def test_no_server_forgets_a_job(compose: dict[str, Any], name: str) -> None:
    command = " ".join(compose["services"][name]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_the_worker_runs_the_bookstore_from_the_checkout(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    assert re.fullmatch(r"python:3\.\d+-slim", worker["image"])
    assert worker["volumes"] == [".:/checkout:ro"]
    folder = CHECKOUT / Path(worker["working_dir"]).relative_to("/checkout")
    assert folder == CHECKOUT / "examples" / "bookstore"
    shell, flag, script = worker["command"]
    assert (shell, flag) == ("sh", "-c")
    assert "pip install -q /checkout " in script
    started = re.search(r"exec rqj worker (\w+):(\w+)$", script)
    assert started, "the worker itself must get the TERM of `docker compose stop`"
    module = ast.parse((folder / f"{started[1]}.py").read_text("utf-8"))
    names = {
        target.id
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert started[2] in names


def test_the_worker_finds_the_server(compose: dict[str, Any]) -> None:
    worker, server = compose["services"]["worker"], compose["services"]["server"]
    assert worker["environment"] == {"RQJ_URL": "redis://server:6379/0"}
    assert worker["depends_on"] == {"server": {"condition": "service_healthy"}}
    assert "healthcheck" in server
    # A worker hands its jobs back 25 s after a TERM at the latest; killed before, it could not.
    assert int(worker["stop_grace_period"].removesuffix("s")) > 25


def test_the_cluster_tells_addresses_that_the_host_can_reach(compose: dict[str, Any]) -> None:
    cluster = compose["services"]["cluster"]
    script = cluster["command"][-1]
    loops = {tuple(map(int, ports.split())) for ports in re.findall(r"for port in ([\d ]+);", script)}
    [ports] = loops
    assert set(ports) == published(cluster)
    created = re.search(r"--cluster create ([\d.: ]+) --cluster-yes", script)
    assert created
    assert created[1].split() == [f"127.0.0.1:{port}" for port in ports]
    assert "--cluster-announce-ip 127.0.0.1" in script


def test_readme_shows_both(compose: dict[str, Any]) -> None:
    commands = readme_commands()
    assert ["docker", "compose", "up"] in [command[:3] for command in commands]
    assert any("cluster" in command for command in commands)


def test_readme_names_only_what_is_there(compose: dict[str, Any]) -> None:
    services = compose["services"]
    profiles = {profile for service in services.values() for profile in service.get(PROFILED, [])}
    for command in readme_commands():
        words = iter(command[2:])
        for word in words:
            if word == "--profile":
                assert next(words) in profiles, " ".join(command)
            elif word in ("up", "down", "stop", "start", "logs", "exec", "run", "restart", "ps", "config"):
                named = [rest for rest in words if not rest.startswith("-")]
                known = named[:1] if word in ("exec", "run") else named
                assert set(known) <= set(services), " ".join(command)


def test_readme_tells_the_ports(compose: dict[str, Any]) -> None:
    text = README.read_text("utf-8")
    told = {int(port) for port in re.findall(r"(?:localhost|127\.0\.0\.1):(\d{4,5})", text)}
    for service in compose["services"].values():
        ports = published(service)
        assert not ports or ports & told, f"README tells none of the ports {ports}"


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not on the PATH")
@pytest.mark.parametrize("profile", [[], ["--profile", "cluster"]], ids=["default", "cluster"])
def test_docker_compose_takes_it(profile: list[str]) -> None:
    said = subprocess.run(
        ["docker-compose", *profile, "config", "-q"], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert (said.returncode, said.stderr) == (0, "")


@pytest.mark.skipif(
    shutil.which("redis-server") is None or shutil.which("redis-cli") is None,
    reason="redis-server is not on the PATH",
)
def test_the_cluster_script_makes_a_cluster(compose: dict[str, Any], tmp_path: Path) -> None:
    """The script of the container, run here with Debian's programs on ports that nobody uses."""
    script = compose["services"]["cluster"]["command"][-1].replace("$$", "$")
    for port, free in zip((7001, 7002, 7003), free_ports(3), strict=True):
        script = script.replace(str(port), str(free))
    script = script.replace("/data/", f"{tmp_path}/").replace("valkey-", "redis-")
    first = re.search(r"redis-cli -p (\d+) cluster info", script)
    assert first
    with (tmp_path / "log").open("w") as log:
        shell = subprocess.Popen(["sh", "-c", script], stdout=log, stderr=log, start_new_session=True)
        try:
            wait_for_cluster(first[1], shell, tmp_path / "log")
        finally:
            shell.terminate()
            shell.wait(timeout=20)
    told = (tmp_path / "log").read_text()
    assert told.count("ready to exit") == 3, "a TERM must reach the servers"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, low enough for a cluster's second port 10,000 above."""
    found: list[int] = []
    for port in range(21001, 31000):
        with socket.socket() as probe, socket.socket() as bus:
            try:
                probe.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    pytest.fail("no free ports")


def wait_for_cluster(port: str, shell: "subprocess.Popen[bytes]", log: Path) -> None:
    """Ask until the cluster says that it is up, for at most 60 s."""
    deadline = time.monotonic() + 60
    while True:
        said = subprocess.run(["redis-cli", "-p", port, "cluster", "info"], capture_output=True, text=True)
        if "cluster_state:ok" in said.stdout and "cluster_slots_assigned:16384" in said.stdout:
            return
        assert shell.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
