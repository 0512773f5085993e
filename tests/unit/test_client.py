"""NimbusClient: whom it asks, whom it calls, and what it says if nobody leads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from storm_py.client import NimbusClient
from storm_py.config import configuration
from storm_py.errors import (
    AuthorizationException,
    NoLeaderError,
    NotAliveException,
    RemoteError,
    RpcError,
    UnreachableError,
)
from storm_py.rpc.client import Patience
from storm_py.rpc.definitions import KillOptions, RebalanceOptions
from storm_py.rpc.server import ThriftServer
from tests.fake_nimbus import HOST, FakeNimbus

ONCE = Patience(attempts=1)
NOBODY = "nobody leads"


@dataclass
class Time:
    """A clock that sleeping moves; `then` happens in each sleep."""

    now: float = 0.0
    then: Callable[[], object] = lambda: None
    slept: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def sleep(self, secs: float) -> None:
        self.slept.append(secs)
        self.now += secs
        self.then()


class Nimbuses:
    """Some nimbuses, and a client that knows all of them."""

    def __init__(self, nimbuses: list[FakeNimbus], seeds: list[tuple[str, int]]) -> None:
        self.nimbuses = nimbuses
        self.seeds = seeds
        self.time = Time()
        self.told: list[str] = []

    def lead(self, number: int, *of: int) -> None:
        """Let these, or all, say that one of them leads."""
        for i in of or range(len(self.nimbuses)):
            self.nimbuses[i].leader = self.seeds[number]
            self.nimbuses[i].before.pop("getLeader", None)

    def lead_none(self) -> None:
        for nimbus in self.nimbuses:
            nimbus.failing("getLeader", ValueError(NOBODY))

    def client(self, *seeds: tuple[str, int]) -> NimbusClient:
        return NimbusClient(
            seeds or self.seeds,
            ONCE,
            leader_secs=1.0,
            on_wait=self.told.append,
            clock=self.time.clock,
            sleep=self.time.sleep,
        )


@pytest.fixture
def two() -> Iterator[Nimbuses]:
    """Two nimbuses, of which the first leads."""
    with ExitStack() as stack:
        nimbuses = [FakeNimbus(), FakeNimbus()]
        servers = [stack.enter_context(ThriftServer(nimbus, HOST)) for nimbus in nimbuses]
        both = Nimbuses(nimbuses, [server.address for server in servers])
        both.lead(0)
        yield both


def unused() -> tuple[str, int]:
    with socket.create_server((HOST, 0)) as listener:
        return HOST, listener.getsockname()[1]


def listens_not(address: tuple[str, int]) -> str:
    return (
        f"nothing listens at {HOST}:{address[1]}; start the server there, or name the host and "
        "port where it runs"
    )


class TestFinding:
    @pytest.mark.parametrize("leader", [0, 1])
    def test_calls_go_to_whom_the_first_says(self, two: Nimbuses, leader: int) -> None:
        two.nimbuses[leader].running("words")
        two.lead(leader, 0)
        two.lead(1 - leader, 1)  # is not asked
        with two.client() as client:
            assert client.leader == two.seeds[leader]
            client.nimbus.killTopologyWithOpts("words", KillOptions())
        assert two.nimbuses[leader].calls == [("kill", "words", None)]
        assert (two.told, two.time.slept) == ([], [])

    def test_those_that_are_not_there_are_passed_over(self, two: Nimbuses) -> None:
        with two.client(unused(), unused(), two.seeds[1]) as client:
            assert client.leader == two.seeds[0]

    def test_a_configuration_names_the_seeds(self) -> None:
        conf = configuration(None, {"nimbus.seeds": [HOST, HOST], "nimbus.thrift.port": 1})
        with pytest.raises(UnreachableError) as caught:
            NimbusClient.of(conf, print).connect()
        assert str(caught.value).count(f"{HOST}:1 ") == 1

    def test_nobody_is_there(self, two: Nimbuses) -> None:
        seeds = unused(), unused()
        with pytest.raises(UnreachableError) as caught:
            two.client(*seeds).connect()
        assert str(caught.value).splitlines() == [
            "no nimbus can be reached; asked was each host of nimbus.seeds:",
            *(f"  {listens_not(seed)}" for seed in seeds),
            "Start a cluster on this machine with `storm-py cluster`, or name that of another one "
            "by nimbus.seeds and nimbus.thrift.port, in storm.yaml or with -c",
        ]
        assert two.time.slept == []

    def test_it_may_be_forbidden(self, two: Nimbuses) -> None:
        two.nimbuses[0].failing("getLeader", AuthorizationException("not you"))
        with pytest.raises(AuthorizationException, match="not you"):
            two.client().connect()


class TestWaiting:
    def test_for_an_election(self, two: Nimbuses) -> None:
        two.lead_none()
        two.time.then = lambda: two.lead(1) if len(two.time.slept) == 3 else None
        with two.client() as client:
            assert client.leader == two.seeds[1]
        assert two.time.slept == [0.25] * 3
        assert two.told == ["no nimbus leads yet; waiting for one"]

    def test_in_vain(self, two: Nimbuses) -> None:
        two.lead_none()
        with pytest.raises(NoLeaderError) as caught:
            two.client().connect()
        assert str(caught.value).splitlines() == [
            "no nimbus leads, not after 1 s of waiting either:",
            *(
                f"  {HOST}:{port} could not answer getLeader: getLeader failed: ValueError: "
                f"{NOBODY}"
                for _, port in two.seeds
            ),
            "After the death of a leader it takes storm.zookeeper.session.timeout until another "
            "one leads; if this lasts, see whether ZooKeeper runs, and what nimbus logs",
        ]
        assert two.time.now == 1.0

    def test_for_a_leader_that_has_died(self, two: Nimbuses) -> None:
        gone = two.nimbuses[1].leader = unused()
        two.nimbuses[0].leader = gone
        two.time.then = lambda: two.lead(0)
        with two.client() as client:
            assert client.leader == two.seeds[0]

    def test_for_one_that_calls_itself_what_others_cannot_reach(self, two: Nimbuses) -> None:
        port = unused()[1]
        two.nimbuses[0].leader = ("localhost", port)
        # Another address of this machine, as another machine would have one.
        with ThriftServer(two.nimbuses[0], "127.0.0.2") as server:
            with pytest.raises(NoLeaderError) as caught:
                two.client(server.address).connect()
            seed = server.address[1]
        assert str(caught.value).splitlines()[1] == (
            f"  127.0.0.2:{seed} says that localhost:{port} leads, but nothing listens at "
            f"localhost:{port}; start the server there, or name the host and port where it runs; "
            "that names this machine: set storm.local.hostname where that nimbus runs"
        )

    def test_for_one_that_says_nothing(self) -> None:
        with socket.create_server((HOST, 0)) as listener:
            port = listener.getsockname()[1]
            patience = Patience(attempts=1, answer_secs=0.05)
            with pytest.raises(NoLeaderError) as caught:
                NimbusClient([(HOST, port)], patience, leader_secs=0).connect()
        assert str(caught.value).splitlines()[1] == (
            f"  {HOST}:{port} is there, but did not say within 0.05 s who leads: it may wait for "
            "ZooKeeper"
        )

    def test_for_one_that_hangs_up(self) -> None:
        with socket.create_server((HOST, 0)) as listener:
            port = listener.getsockname()[1]
            thread = threading.Thread(target=lambda: listener.accept()[0].close())
            thread.start()
            with pytest.raises(NoLeaderError) as caught:
                NimbusClient([(HOST, port)], ONCE, leader_secs=0).connect()
            thread.join()
        assert str(caught.value).splitlines()[1] == (
            f"  {HOST}:{port} hung up when it was asked who leads"
        )


class TestCalling:
    def test_what_it_answers_is_raised(self, two: Nimbuses) -> None:
        with two.client() as client, pytest.raises(NotAliveException, match="words is not alive"):
            client.nimbus.activate("words")

    def test_a_failure_of_the_leader(self, two: Nimbuses) -> None:
        two.nimbuses[0].failing("rebalance", ValueError("broken"))
        with two.client() as client, pytest.raises(RemoteError, match="broken") as caught:
            client.call("rebalance", "words", RebalanceOptions())
        assert not isinstance(caught.value, NoLeaderError)

    def test_a_failure_of_what_was_the_leader(self, two: Nimbuses) -> None:
        two.nimbuses[0].failing("rebalance", ValueError("not a leader"))
        two.nimbuses[1].running("words")
        with two.client() as client:
            two.lead(1)
            with pytest.raises(NoLeaderError) as caught:
                client.call("rebalance", "words", RebalanceOptions())
            assert str(caught.value) == (
                f"{HOST}:{two.seeds[0][1]} could not answer rebalance: rebalance failed: "
                f"ValueError: not a leader; it was the leader, and {HOST}:{two.seeds[1][1]} is by "
                "now: look what has become of it, and try again"
            )
            client.call("rebalance", "words", RebalanceOptions())
        assert two.nimbuses[1].calls == [("rebalance", "words", None, None, None)]

    def test_a_failure_and_nobody_leads(self, two: Nimbuses) -> None:
        two.nimbuses[0].failing("rebalance", ValueError("not a leader"))
        with two.client() as client:
            two.lead_none()
            with pytest.raises(RemoteError, match="not a leader") as caught:
                client.call("rebalance", "words", RebalanceOptions())
        assert not isinstance(caught.value, NoLeaderError)

    def test_what_cannot_be_sent_is_found_without_sending(self, two: Nimbuses) -> None:
        with two.client() as client:
            client.check("activate", "words")
            with pytest.raises(TypeError, match="activate"):
                client.check("activate", "words", 3)
            with pytest.raises(RpcError, match="activate is a call of 16777"):
                client.check("activate", "x" * (1 << 24))
        assert two.nimbuses[0].calls == []
