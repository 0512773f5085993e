"""What operators get wrong when they submit a topology, see `tests.operators`."""

from __future__ import annotations

from typing import Final

from tests.operators import Mistake

__all__ = ["SUBMITTING"]

SUBMITTING: Final = (
    Mistake(
        "name taken",
        "The name of a submission is that of a topology that runs.",
        "the name 'words' is taken by <id>, which is ACTIVE; end that with `storm-py kill words`, "
        "or choose another name",
        "What runs under the name goes on. To replace it, kill it, wait until `storm-py list` "
        "shows it no more, and submit again.",
        "submit flow.py words",
        3,
    ),
    Mistake(
        "name being killed",
        "The name is that of a topology that was killed a moment ago.",
        "the name 'dying' is taken by <id>, which is being killed: wait until `storm-py list` "
        "shows it no more, or choose another name",
        "It takes the `-w` of its kill, by default its message timeout.",
        "submit flow.py dying",
        3,
    ),
    Mistake(
        "name not valid",
        "The name cannot be one.",
        "Topology name 'a.b' is not valid: it contains .; choose one that is not blank and has "
        "none of / . : \\ in it, like 'word-count'",
        "Another name.",
        "submit flow.py a.b",
    ),
    Mistake(
        "no such file",
        "The file with the topology is not there.",
        "flows.py does not exist; did you mean 'flow.py'?",
        "Paths are relative to the current folder.",
        "submit flows.py new",
    ),
    Mistake(
        "import error",
        "The topology imports what is not installed here, or fails otherwise when it is imported. "
        "Its own traceback follows.",
        "importing importing.py failed\n"
        "Traceback (most recent call last):\n"
        '  File "<path>", line 1, in <where>\n'
        "    import no_such_library\n"
        "ModuleNotFoundError: No module named 'no_such_library'",
        "Install the library here, and in the environment of each node; correct the topology.",
        "submit importing.py new",
        traceback=True,
    ),
    Mistake(
        "error while building",
        "The function that builds the topology raises.",
        "'topology' in raising.py failed\nTraceback (most recent call last):",
        "The last frame is where. What stands behind `--` goes to that function: are ARGS missing?",
        "submit raising.py new",
        traceback=True,
    ),
    Mistake(
        "no such component",
        "A bolt subscribes to a component that is not there.",
        "bolt 'count' subscribes to 'line', which is no component of this topology; it has: lines; "
        "did you mean 'lines'? (parts.py, line <n>)",
        "The line is where the subscription is.",
        "submit subscribing.py new",
    ),
    Mistake(
        "cannot be copied",
        "A component holds what cannot go to another process.",
        "spout 'lines': a Lines cannot be copied for its tasks, because of its attribute 'lock': "
        "cannot pickle '_thread.lock' object; make files, sockets, threads and locks in open(), "
        "not in __init__",
        "Move it from `__init__` to `open` or `prepare`.",
        "submit holding.py new",
    ),
    Mistake(
        "include is not there",
        "`--include` names what is not there.",
        "--include data: there is no data in <folder>",
        "Relative paths are looked for from the current folder, as everywhere.",
        "submit flow.py new --include data",
    ),
    Mistake(
        "too large",
        "The project is larger than what a submission may be.",
        "<folder> comes to 2.9 MiB in <n> files; the limit is 2.0 MiB (storm_py.submit.max.bytes). "
        "The largest: <files>. List in .gitignore what the topology does not need, or raise the "
        "limit with -c storm_py.submit.max.bytes=BYTES",
        "A limit above that of nimbus has to be raised in its storm.yaml, too.",
        "submit flow.py new --include {folder}/big -c storm_py.submit.max.bytes=2097152",
    ),
    Mistake(
        "argument without --",
        "An argument for the topology stands before `--`.",
        "Got unexpected extra argument (5); what is meant for the topology goes behind --",
        "`storm-py submit flow.py new -- 5`",
        "submit flow.py new 5",
    ),
    Mistake(
        "submit is killed",
        "A submit is killed (`kill -9`) while it uploads.",
        "",
        "Nothing of it runs and nothing has to be removed: nimbus throws away what it has of the "
        "upload after "
        "[`nimbus.inbox.jar.expiration.secs`](configuration.md#nimbusinboxjarexpirationsecs). "
        "Submit again.",
        code=-9,
    ),
    Mistake(
        "submit is interrupted",
        "The same by Ctrl-C or SIGTERM.",
        "interrupted: nothing is submitted",
        "As above.",
        code=130,
    ),
    Mistake(
        "disk of nimbus is full",
        "The disk of nimbus is full.",
        "nimbus cannot store an upload in <folder>: <reason>; make room there, or have "
        "storm.local.dir of nimbus name another folder",
        "Topologies run on; nimbus has thrown away what came of this upload. Make room and submit "
        "again.",
        code=3,
    ),
    Mistake(
        "disk of the client is full",
        "The disk with the temporary files is full, where the command runs.",
        "the archive of project cannot be written, as a temporary file: <reason>; TMPDIR says "
        "where these are",
        "Make room, or `TMPDIR=/elsewhere storm-py submit ...`",
    ),
    Mistake(
        "broken archive",
        "What arrives at nimbus is no archive: damaged on its way, or another program's.",
        "topology 'new': its archive is refused: <file> is no zip file that can be read: <reason>",
        "Submit again.",
        code=3,
    ),
    Mistake(
        "versions of submit and nimbus",
        "storm-py here is not that of nimbus.",
        "nimbus at <address> runs storm-py 0.0.9, and this is <version>; use the same version "
        "here, there and on the nodes",
        "`storm-py version` says what is here.",
        code=3,
    ),
    Mistake(
        "versions of submit and node",
        "storm-py on a node is not that of the submission. `storm-py get-errors NAME`:",
        "submitted by storm_py 0.0.9, and this node has <version>: install the same version on "
        "both, then submit it again",
        "Kill the topology, install the same version everywhere, and submit again.",
        code=0,
    ),
    Mistake(
        "nimbus has lost ZooKeeper",
        "ZooKeeper is down, and nimbus runs.",
        "no nimbus leads, not after 10 s of waiting either:\n"
        "  <address> is there, but did not say within 10 s who leads: it may wait for ZooKeeper\n"
        "After the death of a leader it takes storm.zookeeper.session.timeout until another one "
        "leads; if this lasts, see whether ZooKeeper runs, and what nimbus logs",
        "Start ZooKeeper; the rest comes back by itself. Topologies run on meanwhile.",
        code=3,
    ),
)
