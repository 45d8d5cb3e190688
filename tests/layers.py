#!/usr/bin/python3
"""Checks the direction of includes: a file of a layer includes only from its own layer and from the layers below it.

The order is that of docs/architecture.md, between the layers and between the folders of a layer. One rule more keeps the
engine a pure machine: it includes nothing of the network and no header that gives it a thread or a clock.

    layers.py              check src and include
    layers.py --self-test  check that each rule finds a violation
"""

import os
import re
import sys

LAYERS = ["base", "net", "redis", "wire", "engine", "api", "cli"]
# The engine takes events and `now`, and returns effects.
NOT_IN_ENGINE = ["net", "<thread>", "<mutex>", "<shared_mutex>", "<condition_variable>", "<future>", "<random>", "boost/asio",
                 "sys", "<poll.h>", "<time.h>", "<ctime>", "<unistd.h>"]
PUBLIC_WITH_ASIO = {"include/holdfast/async.hpp", "include/holdfast/detail/completion.hpp"}

# Inside a layer: these folders include nothing of those folders.
NOT_INSIDE = {
    "redis/resp": ["redis/url", "redis/slots", "redis/session", "redis/cluster", "redis/sentinel"],
    "redis/url": ["redis/slots", "redis/session", "redis/cluster", "redis/sentinel"],
    "redis/slots": ["redis/session", "redis/cluster", "redis/sentinel"],
    "redis/session": ["redis/cluster", "redis/sentinel"],
    "redis/cluster": ["redis/sentinel"],
    "redis/sentinel": ["redis/slots", "redis/cluster"],
    "wire/common": ["wire/mutex", "wire/rw", "wire/semaphore"],
    "wire/mutex": ["wire/rw", "wire/semaphore"],
    "wire/rw": ["wire/mutex", "wire/semaphore"],
    "wire/semaphore": ["wire/mutex", "wire/rw"],
    "engine/node": ["engine/quorum", "engine/local"],
    "engine/quorum": ["engine/local"],
    "engine/local": ["engine/node", "engine/quorum"],
    "api/backends": ["api/operations", "api/locks"],
    "api/operations": ["api/locks"],
    "api/runtime": ["api/locks"],
    "cli/server": ["cli/run", "cli/doctor", "cli/bench", "cli/web", "cli/commands"],
    "cli/terminal": ["cli/run", "cli/doctor", "cli/bench", "cli/web", "cli/commands"],
    "cli/inspect": ["cli/run", "cli/doctor", "cli/bench", "cli/web", "cli/commands"],
    "cli/run": ["cli/doctor", "cli/bench", "cli/web", "cli/commands"],
    "cli/doctor": ["cli/run", "cli/bench", "cli/web", "cli/commands"],
    "cli/bench": ["cli/run", "cli/doctor", "cli/web", "cli/commands"],
    "cli/web": ["cli/run", "cli/doctor", "cli/bench", "cli/commands"],
}
# The core owns the kept locks of its client, which are built of what locks are.
INSIDE_ALL_THE_SAME = {("src/api/runtime/core.hpp", "api/locks/kept_locks.hpp")}


def includes_of(text):
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*(<[^>]+>|"[^"]+")', text, re.MULTILINE)


def is_below(name, folder):
    return name == folder or name.startswith(folder + "/")


def names_header_of(each, bad):
    """`bad` is a header in brackets, or a folder: boost/asio is boost/asio.hpp, too."""
    name = each.strip('<>"')
    return each == bad or is_below(name, bad) or name == bad + ".hpp"


def complaints_about_public(path, text):
    for each in includes_of(text):
        if names_header_of(each, "boost/asio") and path not in PUBLIC_WITH_ASIO:
            yield f"{path}: public headers include Asio in async.hpp only, not {each}"
        if each.startswith('"'):
            yield f"{path}: a public header includes {each}, which is not installed"


def complaints_about_source(path, text):
    layer = path.split("/")[1]
    folder = os.path.dirname(path).removeprefix("src/")
    forbidden = [bad for mine, those in NOT_INSIDE.items() if is_below(folder, mine) for bad in those]
    for each in includes_of(text):
        name = each.strip('<>"')
        first = name.split("/")[0]
        if each.startswith('"') and first not in LAYERS:
            yield f"{path}: {each} is in no layer"
        elif each.startswith('"') and LAYERS.index(first) > LAYERS.index(layer):
            yield f"{path}: {layer} is below {first}, and includes {each}"
        elif any(is_below(name, bad) for bad in forbidden) and (path, name) not in INSIDE_ALL_THE_SAME:
            yield f"{path}: {folder} is below {os.path.dirname(name)}, and includes {each}"
        if layer == "engine" and any(names_header_of(each, bad) for bad in NOT_IN_ENGINE):
            yield f"{path}: the engine has no socket, thread or clock, and includes {each}"


def complaints_about(path, text):
    return list(complaints_about_public(path, text) if path.startswith("include/") else complaints_about_source(path, text))


PLANTED = [  # (file, line, what the complaint says; none: the line is allowed)
    ("src/redis/url/a.cpp", '#include "engine/engine.hpp"', "redis is below engine"),
    ("src/redis/url/a.cpp", '  #  include "engine/engine.hpp"', "redis is below engine"),
    ("src/wire/a.cpp", '#include "cli/run/child.hpp"', "wire is below cli"),
    ("src/wire/a.cpp", '#include "a.hpp"', "is in no layer"),
    ("src/engine/a.cpp", "#include <boost/asio.hpp>", "no socket, thread or clock"),
    ("src/engine/a.cpp", "#include <boost/asio/steady_timer.hpp>", "no socket, thread or clock"),
    ("src/engine/a.cpp", "#include <thread>", "no socket, thread or clock"),
    ("src/engine/a.cpp", "#include <sys/socket.h>", "no socket, thread or clock"),
    ("src/engine/a.cpp", '#include "net/alarm.hpp"', "no socket, thread or clock"),
    ("src/engine/a.cpp", '#include "wire/keys.hpp"', None),
    ("src/engine/a.cpp", "#include <vector>", None),
    ("src/redis/session/a.cpp", '#include "redis/cluster/cluster_link.hpp"', "redis/session is below redis/cluster"),
    ("src/redis/session/a.cpp", '#include "redis/slots/slot_map.hpp"', None),
    ("src/engine/node/a.cpp", '#include "engine/quorum/pacing.hpp"', "engine/node is below engine/quorum"),
    ("src/engine/quorum/a.cpp", '#include "engine/node/parts.hpp"', None),
    ("src/api/operations/a.cpp", '#include "api/locks/lock_part.hpp"', "api/operations is below api/locks"),
    ("src/api/runtime/loop.cpp", '#include "api/locks/kept_locks.hpp"', "api/runtime is below api/locks"),
    ("src/api/runtime/core.hpp", '#include "api/locks/kept_locks.hpp"', None),
    ("src/cli/inspect/locks/a.cpp", '#include "cli/commands/program.hpp"', "cli/inspect/locks is below cli/commands"),
    ("include/holdfast/a.hpp", "#include <boost/asio.hpp>", "Asio in async.hpp only"),
    ("include/holdfast/a.hpp", "#include <boost/asio/awaitable.hpp>", "Asio in async.hpp only"),
    ("include/holdfast/a.hpp", '#include "base/clock.hpp"', "not installed"),
    ("include/holdfast/async.hpp", "#include <boost/asio/awaitable.hpp>", None),
]


def self_test():
    wrong = []
    for path, line, wanted in PLANTED:
        found = complaints_about(path, f"#pragma once\n{line}\n")
        if (len(found) != 1 or wanted not in found[0]) if wanted else found:
            wrong.append(f"{path} with {line}: {found or 'no complaint'}, and not {wanted!r}")
    print("\n".join(wrong) or f"{len(PLANTED)} planted lines are found or allowed as they should be")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    listed = [os.path.join(folder, name) for top in ("src", "include") for folder, _, names in sorted(os.walk(top))
              for name in sorted(names) if name.endswith((".cpp", ".hpp"))]
    complaints = []
    for path in listed:
        with open(path) as file:
            complaints += complaints_about(path, file.read())
    print("\n".join(complaints) or f"{len(listed)} files include in one direction")
    return 1 if complaints or not listed else 0


if __name__ == "__main__":
    sys.exit(main())
