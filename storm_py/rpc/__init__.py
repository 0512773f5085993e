"""Storm's Thrift service, both ends: nimbus serves it; command line, supervisors and ui call it.

It carries calls and knows nothing of what they do: handlers and the search for the leader are other
layers. What a call takes and gives is in ``storm.thrift``, with Storm's names and ids, so that
clients of Storm (streamparse, Storm's own in Java) can call a nimbus here. Where to look:

- ``definitions`` and ``summaries``: the structs, typed; ``interface``: the calls, typed
- ``server``: ThriftServer, which serves a handler; ``client``: ThriftClient, which calls one
- ``service``: the IDL, read; ``codec``, ``messages``, ``framing``: bytes; ``dispatch``: one call
"""
