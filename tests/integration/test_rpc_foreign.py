"""Both ends against thriftpy2's own, which storm-py does not use: a mistake of both would show."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest
from thriftpy2.protocol import TBinaryProtocolFactory, TCyBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TApplicationException, TProcessor
from thriftpy2.transport import TFramedTransportFactory, TSocket

from storm_py import errors
from storm_py.rpc.client import ThriftClient
from storm_py.rpc.definitions import (
    Bolt,
    ComponentCommon,
    ComponentObject,
    GlobalStreamId,
    Grouping,
    NullStruct,
    RebalanceOptions,
    ShellComponent,
    SpoutSpec,
    StormTopology,
    StreamInfo,
)
from storm_py.rpc.server import ThriftServer
from storm_py.rpc.service import IDL
from storm_py.rpc.summaries import NimbusSummary
from tests.rpc import TIMEOUT_SECS, Handler

TOPOLOGY = StormTopology(
    spouts={
        "lines": SpoutSpec(
            spout_object=ComponentObject(shell=ShellComponent(execution_command="python")),
            common=ComponentCommon(
                inputs={},
                streams={"default": StreamInfo(output_fields=["line"], direct=False)},
                parallelism_hint=2,
            ),
        )
    },
    bolts={
        "count": Bolt(
            bolt_object=ComponentObject(serialized_java=b"\x80\5"),
            common=ComponentCommon(
                inputs={
                    GlobalStreamId(componentId="lines", streamId="default"): Grouping(
                        fields=["line"]
                    ),
                    GlobalStreamId(componentId="lines", streamId="ends"): Grouping(
                        all=NullStruct()
                    ),
                },
                streams={},
                json_conf='{"topology.tasks": 8}',
            ),
        )
    },
    state_spouts={},
)
LEADER = NimbusSummary(host="h", port=6627, uptime_secs=5, isLeader=True, version="2")


def kill(name: str) -> None:
    raise errors.NotAliveException(f"no {name}")


def fail() -> str:
    raise ValueError("disk full")


@pytest.mark.parametrize("protocol", [TBinaryProtocolFactory, TCyBinaryProtocolFactory])
def test_a_client_of_thriftpy2_calls_our_server(protocol: Any) -> None:
    submitted: list[tuple[object, ...]] = []
    handler = Handler(
        submitTopology=lambda *arguments: submitted.append(arguments),
        getUserTopology=lambda id: TOPOLOGY,
        getLeader=lambda: LEADER,
        killTopology=kill,
        getNimbusConf=fail,
    )
    with ThriftServer(handler) as server:
        host, port = server.address
        client = make_client(
            IDL.Nimbus,
            host,
            port,
            proto_factory=protocol(),
            trans_factory=TFramedTransportFactory(),
            timeout=int(TIMEOUT_SECS * 1000),
        )
        client.submitTopology("wc", "there", "{}", TOPOLOGY)
        assert submitted == [("wc", "there", "{}", TOPOLOGY)]
        assert client.getUserTopology("wc-1-1") == TOPOLOGY
        assert client.getLeader() == LEADER
        with pytest.raises(IDL.NotAliveException) as missing:
            client.killTopology("wc")
        assert missing.value.msg == "no wc"
        for call, kind in ((client.getClusterInfo, 1), (client.getNimbusConf, 6)):
            with pytest.raises(TApplicationException) as caught:
                call()
            assert caught.value.type == kind
        client.close()


def test_our_client_calls_a_server_of_thriftpy2() -> None:
    rebalanced: list[tuple[object, ...]] = []

    def not_alive(name: str) -> None:
        raise IDL.NotAliveException(f"no {name}")

    handler = Handler(
        rebalance=lambda *arguments: rebalanced.append(arguments),
        getUserTopology=lambda id: TOPOLOGY,
        getLeader=lambda: LEADER,
        killTopology=not_alive,
    )
    options = RebalanceOptions(num_workers=2, num_executors={"count": 4})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener, handler, 4))
        thread.start()
        with ThriftClient(*listener.getsockname()) as client:
            client.nimbus.rebalance("wc", options)
            assert rebalanced == [("wc", options)]
            assert client.nimbus.getUserTopology("wc-1-1") == TOPOLOGY
            assert client.nimbus.getLeader() == LEADER
            with pytest.raises(errors.NotAliveException, match="no wc"):
                client.nimbus.killTopology("wc")
        thread.join(TIMEOUT_SECS)


def serve(listener: socket.socket, handler: Handler, calls: int) -> None:
    """Answer so many calls of one client as thriftpy2's servers do."""
    untyped: tuple[Any, ...] = (TSocket, TFramedTransportFactory, TCyBinaryProtocolFactory)
    make_socket, framing, binary = untyped
    transport = make_socket()
    transport.set_handle(listener.accept()[0])
    framed = framing().get_transport(transport)
    protocol = binary().get_protocol(framed)
    processor = TProcessor(IDL.Nimbus, handler)
    for _ in range(calls):
        processor.process(protocol, protocol)
    framed.close()
