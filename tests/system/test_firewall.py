"""The firewall lines of docs/deploy.md, loaded into a network namespace: which clients they accept."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "deploy.md").read_text()
TABLE, BOUNDS = re.findall(r"```text\n((?:table inet|    tcp dport).*?)```", PAGE, flags=re.S)
STRANGER, NEIGHBOUR = ("203.0.113.5", "2001:db8::5"), ("192.0.2.7", "2001:db8:1::7")

CALLS = """
import selectors, socket, sys
waiting, kept, count = selectors.DefaultSelector(), [], dict.fromkeys(sys.argv[1:], 0)
for family, here in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    kept.append(socket.create_server((here, 7447), family=family, backlog=100))
    for source in sys.argv[1 + (family == socket.AF_INET6) :: 2]:
        for _ in range(12):
            caller = socket.socket(family)
            caller.setblocking(False)
            caller.bind((source, 0))
            caller.connect_ex((here, 7447))
            waiting.register(caller, selectors.EVENT_WRITE, source)
while came := waiting.select(2.0):  # nobody gets in any more: the kernel has called again for all by then
    for key, _ in came:
        waiting.unregister(key.fileobj)
        count[key.data] += key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        kept.append(key.fileobj)
for source in count:
    print(source, count[source])
"""


def may_make_namespaces():
    return all(map(shutil.which, ("ip", "nft"))) and os.geteuid() == 0


@pytest.fixture
def inside():
    """Runs a command in a namespace of its own, where strangers and neighbours have addresses."""
    name = f"firewall-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("network namespaces cannot be made here")

    def run(*command, text=None):
        done = subprocess.run(
            ["ip", "netns", "exec", name, *command], input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        run("ip", "link", "set", "lo", "up")
        for old, new in (STRANGER, NEIGHBOUR):
            run("ip", "addr", "add", f"{old}/32", "dev", "lo")
            run("ip", "-6", "addr", "add", f"{new}/128", "dev", "lo", "nodad")
        yield run
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def calls_that_came_through(inside, rules):
    inside("nft", "-f", "-", text=rules)
    out = inside(sys.executable, "-c", CALLS, *STRANGER, *NEIGHBOUR)
    return {source: int(count) for source, count in map(str.split, out.splitlines())}


@pytest.mark.skipif(not may_make_namespaces(), reason="needs nft and the right to make namespaces")
def test_the_firewall_lets_in_neighbours_alone_or_bounds_every_caller(inside):
    came = calls_that_came_through(inside, TABLE)
    assert came == {STRANGER[0]: 0, NEIGHBOUR[0]: 12, STRANGER[1]: 0, NEIGHBOUR[1]: 0}
    inside("nft", "flush", "ruleset")
    chain = re.sub(r"(    tcp dport 7447 .*\n)+", lambda _: BOUNDS, TABLE)
    assert chain.count("tcp dport") == BOUNDS.count("tcp dport") == 4
    assert set(calls_that_came_through(inside, chain).values()) == {8}  # each of them, like the others'
