#!/usr/bin/python3
"""Checks "events in, effects out": code of a layer above is called by the loop of effects only, never during a change.

The interfaces of a machine (engine, Cluster router) are implemented above it or by users of it. Their functions are read
from the headers: every virtual function that is not const. A call of such a function may stand only in the loop that
carries effects out. A call of a function of the machine itself that has the same name is known by what it is called on.

    effects.py              check src
    effects.py --self-test  check that planted calls are found
"""

import os
import re
import sys


class Machine:
    def __init__(self, folder, interfaces, loop, edge=(), own=()):
        self.folder = folder          # all .cpp and .hpp below it
        self.interfaces = interfaces  # (header, class)
        self.loop = loop              # {file: beginnings of the functions and classes that may call}
        self.edge = edge              # files that implement an interface themselves, outside the machine
        self.own = own                # what functions of the same names are called on

    def is_own(self, receiver):
        return any(receiver == name or receiver.endswith("." + name) for name in self.own)


MACHINES = [
    Machine("src/engine",
            [("src/engine/node/outbox.hpp", "outbox"), ("src/engine/node/lock_watch.hpp", "watch_listener"),
             ("src/engine/terms.hpp", "acquire_completion"), ("src/engine/terms.hpp", "hold_completion"),
             ("src/engine/terms.hpp", "hold_listener"), ("src/engine/engine.hpp", "observer")],
            {"src/engine/engine.cpp": ["struct executor {"],
             "src/engine/node/bundle.cpp": ["void bundle::submit_to("],  # carries out effects::send_together
             # A listener that the loop calls: it tells what the nodes have in common with its last statement.
             "src/engine/quorum/majority_watch.cpp": ["void majority_watch::on_sight(", "void majority_watch::on_trouble("]},
            edge=["src/engine/cluster_node.hpp", "src/engine/cluster_node.cpp"],
            own=["wakes_", "wakes()", "agent", "pacing_", "acquisitions_", "held_", "nodes_.of(n)",
                 "whole_"]),
    # on_push() ends with the listener: the message is valid during that call only.
    Machine("src/redis/cluster",
            [("src/redis/cluster/cluster_router.hpp", "router_listener"),
             ("src/redis/cluster/cluster_router.hpp", "link_maker")],
            {"src/redis/cluster/cluster_router.cpp": ["void cluster_router::carry_out(", "void cluster_router::on_push("]},
            edge=["src/redis/cluster/cluster_link.hpp"]),
]


def body_of(text, start):
    """From `start` to the brace at the beginning of a line that ends the function or class."""
    end = re.compile(r"^\}", re.MULTILINE).search(text, start)
    return start, end.end() if end else len(text)


def functions_of(header, name):
    start = header.find(f"class {name} {{")
    if start < 0:
        return set()
    first, last = body_of(header, start)
    declared = re.findall(r"virtual [^;{]*?\b(\w+)\(([^;{]*)\)([^;{()]*)[;{]", header[first:last])
    return {function for function, _, after in declared if "const" not in after}


def allowed_in(machine, path, text):
    return [body_of(text, found.start()) for begin in machine.loop.get(path, [])
            for found in re.finditer("^" + re.escape(begin), text, re.MULTILINE)]


def complaints_about(machine, names, path, text):
    allowed = allowed_in(machine, path, text)
    call = re.compile(r"([\w.()\->\[\]*]*?)(?:->|\.)(" + "|".join(sorted(names)) + r")\(")
    found = []
    for one in call.finditer(text):
        line = text.count("\n", 0, one.start(2)) + 1
        is_comment = "//" in text[text.rfind("\n", 0, one.start(2)) + 1:one.start(2)]
        in_loop = any(first <= one.start() < last for first, last in allowed)
        if not is_comment and not in_loop and not machine.is_own(one[1].lstrip("(")):
            found.append(f"{path}:{line}: {one[0]}...) calls a layer above, outside the loop of effects")
    return found


def names_of(machine, read):
    names = set()
    for header, name in machine.interfaces:
        functions = functions_of(read(header), name)
        if not functions:
            raise SystemExit(f"{header}: no functions of {name}; has it another name?")
        names |= functions
    return names


def read(path):
    with open(path) as file:
        return file.read()


def files_of(machine):
    return [os.path.join(folder, name) for folder, _, names in sorted(os.walk(machine.folder)) for name in sorted(names)
            if name.endswith((".cpp", ".hpp")) and os.path.join(folder, name) not in machine.edge]


def self_test():
    engine, router = MACHINES
    planted = [  # (machine, file, text, how many complaints)
        (engine, "src/engine/node/renewing.cpp", "void f() {\n    n.whole->listener()->on_lost(why);\n}\n", 1),
        (engine, "src/engine/node/renewing.cpp", "void f() {\n    request->refused(why);\n}\n", 1),
        (engine, "src/engine/node/renewing.cpp", "void f() {\n    out_.submit(request);\n}\n", 1),
        (engine, "src/engine/quorum/holding.cpp", "void f() {\n    observer_.on_renewed();\n}\n", 1),
        (engine, "src/engine/engine.cpp", "void engine::f() {\n    observer_.on_refused();\n}\n", 1),
        (engine, "src/engine/engine.cpp", "struct executor {\n    void f() { who->refused(why); }\n};\n", 0),
        (engine, "src/engine/engine.cpp", "struct executor {\n};\nvoid f() {\n    who->refused(why);\n}\n", 1),
        (engine, "src/engine/node/renewing.cpp", "void f() {\n    agent.node().hears(channel);\n}\n", 0),  # const
        (engine, "src/engine/node/renewing.cpp", "void f() {\n    wakes_.subscribe(lock);  // x->refused(y)\n}\n", 0),
        (router, "src/redis/cluster/map_watch.cpp", "void f() {\n    told_.on_map(fresh, now);\n}\n", 1),
        (router, "src/redis/cluster/cluster_router.cpp",
         "void cluster_router::carry_out(instant now) {\n    told_.on_map(*map_, now);\n}\n", 0),
    ]
    wrong = [f"{path}: {text!r}" for machine, path, text, wanted in planted
             if len(complaints_about(machine, names_of(machine, read), path, text)) != wanted]
    print("\n".join(wrong) or f"{len(planted)} planted calls are found or allowed as they should be")
    return 1 if wrong else 0


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    complaints, calls = [], 0
    for machine in MACHINES:
        names = names_of(machine, read)
        calls += len(names)
        for path in files_of(machine):
            complaints += complaints_about(machine, names, path, read(path))
    print("\n".join(complaints) or f"{calls} functions of upper layers are called by loops of effects only")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
