"""What operators get wrong with all but submit, see `tests.operators`."""

from __future__ import annotations

from typing import Final

from tests.operators import Mistake

__all__ = ["ASKING", "DAEMONS"]

ASKING: Final = (
    Mistake(
        "no nimbus",
        "No nimbus runs there, or it is another place.",
        "no nimbus can be reached; asked was each host of nimbus.seeds:\n"
        "  nothing listens at localhost:<port> (3 attempts); start the server there, or name the "
        "host and port where it runs\n"
        "Start a cluster on this machine with `storm-py cluster`, or name that of another one by "
        "nimbus.seeds and nimbus.thrift.port, in storm.yaml or with -c",
        "As it says.",
        "list -c nimbus.thrift.port={free}",
        1,
    ),
    Mistake(
        "wrong type with -c",
        "A value with `-c` is of a wrong type.",
        "topology.workers is 'many' (str); expected an integer from 1 to 65535",
        "[configuration.md](configuration.md) has the type of each key.",
        "submit flow.py new -c topology.workers=many",
    ),
    Mistake(
        "unknown key",
        "A key is misspelt.",
        "unknown configuration key 'topology.wrokers'; did you mean 'topology.workers'?",
        "Keys of your own are free, but not below `topology.` and other prefixes of Storm's.",
        "submit flow.py new -c topology.wrokers=2",
    ),
    Mistake(
        "no JSON",
        "A value with `-c` is meant to be a list, and the shell has eaten its quotes.",
        "nimbus.seeds=[n1] begins as JSON but is none: <reason>; as a text it goes into quotes: "
        'nimbus.seeds="..."',
        "Quotes around all of it: `-c 'nimbus.seeds=[\"n1\"]'`.",
        "list -c nimbus.seeds=[n1]",
    ),
    Mistake(
        "wrong type in storm.yaml",
        "A value in storm.yaml is of a wrong type.",
        "bad.yaml, line 2: supervisor.slots.ports is 6700 (int); expected a list of ports from 1 "
        "to 65535, each once",
        "Correct the line.",
        "list --config bad.yaml",
    ),
    Mistake(
        "broken storm.yaml",
        "storm.yaml is no YAML.",
        "broken.yaml, line 2, column 1: while parsing a flow sequence: expected ',' or ']', but "
        "got '<what>'",
        "The mistake is there, or just before.",
        "list --config broken.yaml",
    ),
    Mistake(
        "key twice in storm.yaml",
        "A key is twice in storm.yaml.",
        "twice.yaml, line 2, column 1: nimbus.thrift.port is there twice, first in line 1",
        "Remove one of them.",
        "list --config twice.yaml",
    ),
    Mistake(
        "no storm.yaml",
        "`--config` names a file that is not there.",
        "--config storm.yml: <path> is not there",
        "Without `--config` it is looked for in [these places](cluster.md#three-machines).",
        "list --config storm.yml",
    ),
    Mistake(
        "kill of none",
        "No topology has this name. So with each command that takes a NAME.",
        "no topology 'word' runs, but dying, moving, words; did you mean 'words'?",
        "`storm-py list` shows all.",
        "kill word",
        3,
    ),
    Mistake(
        "errors of none",
        "The same with get-errors.",
        "no topology 'wordz' runs, but dying, moving, words; did you mean 'words'?",
        "As above.",
        "get-errors wordz",
        3,
    ),
    Mistake(
        "activate while killed",
        "A topology is activated that is being killed.",
        "No transition for event: ACTIVATE, status: KILLED, storm-id: <id>: it is removed in <n> "
        "s; submit it again after that",
        "A kill cannot be taken back.",
        "activate dying",
        3,
    ),
    Mistake(
        "rebalance twice",
        "A topology is rebalanced while another rebalance waits.",
        "No transition for event: REBALANCE, status: REBALANCING, storm-id: <id>: the rebalance "
        "takes place in <n> s; try again after that, or kill it",
        "Wait; with `-w 0` a rebalance takes place at once.",
        "rebalance moving -n 2",
        3,
    ),
    Mistake(
        "rebalance of no component",
        "`rebalance -e` names no component of the topology.",
        "<id> has no component 'coutn' to rebalance, only: count, lines; did you mean 'count'?",
        "Nothing was changed.",
        "rebalance words -e coutn=2",
        3,
    ),
    Mistake(
        "more executors than tasks",
        "`rebalance -e` asks for more executors than the component has tasks.",
        "'count' has 2 tasks and gets an executor for each, not 4; the number of tasks is chosen "
        "when a topology is submitted",
        "The rest of the rebalance takes place. For more, submit with more tasks.",
        code=0,
    ),
    Mistake(
        "rebalance without number",
        "`rebalance -e` without a number.",
        "'count'; expected COMPONENT=N with a whole number of at least 1, as in count=4",
        "`-e count=4`",
        "rebalance words -e count",
    ),
    Mistake(
        "rebalance of configuration",
        "A rebalance is to change the configuration.",
        "-c topology.message.timeout.secs: rebalance changes workers (-n) and executors (-e) only; "
        "for another configuration, kill the topology and submit it again",
        "As it says.",
        "rebalance words -c topology.message.timeout.secs=5",
    ),
    Mistake(
        "logs of no component",
        "`logs -c` names no component that has run on this machine.",
        "<id> has no logs of component 'coutn' here, but of count, lines; did you mean 'count'?",
        "Logs are on the machine of the worker; `storm-py logs NAME` says which these are.",
        "logs words -c coutn -c storm.local.dir={node}",
        1,
    ),
    Mistake(
        "logs of no worker",
        "`logs --worker` names no port of a worker on this machine.",
        "<id> has no logs of a worker on port 6799 here, but of <ports>",
        "As above.",
        "logs words --worker 6799 -c storm.local.dir={node}",
        1,
    ),
    Mistake(
        "monitor of no component",
        "`monitor -m` names no component of the topology.",
        "topology 'words' has no component 'coutn', but count, lines; did you mean 'count'?",
        "As it says.",
        "monitor words -m coutn --once",
        3,
    ),
    Mistake(
        "no level",
        "`set_log_level` with a level that is none.",
        "'ROOT=LOUD'; expected LOGGER=LEVEL[:SECS], as in ROOT=DEBUG:30; LEVEL is one of ALL, "
        "TRACE, DEBUG, INFO, WARN, ERROR, FATAL, OFF",
        "The levels are Storm's: WARN, not WARNING.",
        "set_log_level words -l ROOT=LOUD",
    ),
)

DAEMONS: Final = (
    Mistake(
        "port of nimbus in use",
        "Something listens on the port of nimbus.",
        "nimbus cannot listen at localhost:<port>: Address already in use; stop what listens "
        "there, or choose another port; the address is storm.local.hostname, the port "
        "nimbus.thrift.port",
        "Often it is a nimbus already; `ss -ltnp` says who listens.",
        "nimbus -c nimbus.thrift.port={taken} -c storm.local.dir={folder}/other",
        1,
    ),
    Mistake(
        "host of nimbus is none",
        "`storm.local.hostname` is no name of this machine.",
        "nimbus cannot listen at no.such.host.invalid:<port>: <reason>; name an address of this "
        "machine; the address is storm.local.hostname, the port nimbus.thrift.port",
        "A name that this machine and the others resolve, by DNS or /etc/hosts.",
        "nimbus -c storm.local.hostname=no.such.host.invalid -c nimbus.thrift.port={free} "
        "-c storm.local.dir={folder}/other",
        1,
    ),
    Mistake(
        "folder of nimbus in use",
        "Another nimbus uses the folder.",
        "another nimbus uses <folder>: stop it, or have storm.local.dir name another folder for "
        "this one",
        "One nimbus for each folder.",
        "nimbus -c nimbus.thrift.port={free}",
        1,
    ),
    Mistake(
        "nimbus without ZooKeeper",
        "ZooKeeper does not run where nimbus looks for it.",
        "no ZooKeeper answers at 127.0.0.1:<port> within 0.1 s: start it, or set "
        "storm.zookeeper.servers and storm.zookeeper.port",
        "Start ZooKeeper first, or let systemd start nimbus until there is one.",
        "nimbus -c storm.zookeeper.port={free} -c nimbus.thrift.port={free} "
        "-c storm.local.dir={folder}/other -c storm.zookeeper.connection.timeout=100",
        1,
    ),
    Mistake(
        "supervisor without ZooKeeper",
        "The same with a supervisor that has no workers to look after.",
        "no ZooKeeper answers at 127.0.0.1:<port> within 0.1 s: start it, or set "
        "storm.zookeeper.servers and storm.zookeeper.port",
        "As above. With workers it goes on without ZooKeeper.",
        "supervisor -c storm.zookeeper.port={free} -c storm.local.dir={folder}/other "
        "-c storm.zookeeper.connection.timeout=100",
        1,
    ),
    Mistake(
        "folder of a supervisor in use",
        "Another supervisor uses the folder.",
        "another supervisor uses the folder <folder>: stop that, or give this one a "
        "storm.local.dir of its own",
        "One supervisor for each folder.",
        "supervisor -c storm.local.dir={node}",
        1,
    ),
    Mistake(
        "folder that cannot be",
        "The folder cannot be made or written.",
        "<folder>: <reason>; storm.local.dir has to name a folder that this user may make and "
        "write to, on a disk with room",
        "See to whom it belongs, and `df`.",
        "supervisor -c storm.local.dir={file}/local",
        1,
    ),
    Mistake(
        "port of ZooKeeper in use",
        "Something listens on the port of ZooKeeper.",
        "ZooKeeper cannot listen on 127.0.0.1:<port>: Address already in use; free it, or choose "
        "another port (--port, storm.zookeeper.port; 0 for any)",
        "Often it is a ZooKeeper already.",
        "dev-zookeeper --port {taken} --data {folder}/other-zookeeper",
        1,
    ),
    Mistake(
        "data of ZooKeeper in use",
        "Another ZooKeeper uses the folder.",
        "another ZooKeeper keeps its data in <folder>: stop it, or choose another folder (--data, "
        "dev.zookeeper.path)",
        "As it says.",
        "dev-zookeeper --port 0 --data {folder}/zookeeper",
        1,
    ),
    Mistake(
        "port of the cluster in use",
        "A port that `storm-py cluster` needs is taken.",
        "ZooKeeper cannot listen on 127.0.0.1:<port>: process <process> listens there; stop it, or "
        "choose another port: -c storm.zookeeper.port=...",
        "A second cluster on a machine needs "
        "[other ports and another folder](cluster.md#one-machine).",
        "cluster -c storm.zookeeper.port={taken} -c nimbus.thrift.port={free} "
        "-c storm.local.dir={folder}/one",
        1,
    ),
    Mistake(
        "too many slots",
        "`storm-py cluster` is to have more slots than there are ports.",
        "90 supervisors with 900 slots each would have the ports 6700 to 87699, and the last port "
        "is 65535: set supervisor.slots.ports to begin lower, or ask for fewer",
        "As it says.",
        "cluster --supervisors 90 --slots 900 -c storm.local.dir={folder}/one",
    ),
)
