#!/usr/bin/python3
"""Checks the direction of includes: a file of a layer includes only from its own layer and from the layers below it.

The order is that of docs/architecture.md. Beside it two rules keep the engine a pure machine: it includes nothing of the
network and no header that gives it a thread or a clock.
"""

import os
import re
import sys

LAYERS = ["base", "net", "redis", "wire", "engine", "api", "cli"]
# The engine takes events and `now`, and returns effects.
NOT_IN_ENGINE = {"net", "<thread>", "<mutex>", "<condition_variable>", "<future>", "<random>", "boost/asio"}
PUBLIC_WITH_ASIO = {"include/holdfast/async.hpp", "include/holdfast/detail/completion.hpp"}


def includes_of(path):
    with open(path) as file:
        return re.findall(r'^#include (<[^>]+>|"[^"]+")', file.read(), re.MULTILINE)


def complaints_about(path):
    found = []
    if path.startswith("include/"):
        for each in includes_of(path):
            name = each.strip('<>"')
            if name.startswith("boost/asio") and path not in PUBLIC_WITH_ASIO:
                found.append(f"{path}: public headers include Asio in async.hpp only, not {each}")
            if each.startswith('"'):
                found.append(f"{path}: a public header includes {each}, which is not installed")
        return found
    layer = path.split("/")[1]
    for each in includes_of(path):
        name = each.strip('<>"')
        first = name.split("/")[0]
        if each.startswith('"') and first not in LAYERS:
            found.append(f"{path}: {each} is in no layer")
        elif each.startswith('"') and LAYERS.index(first) > LAYERS.index(layer):
            found.append(f"{path}: {layer} is below {first}, and includes {each}")
        if layer == "engine" and any(each == bad or name.startswith(bad + "/") for bad in NOT_IN_ENGINE):
            found.append(f"{path}: the engine has no socket, thread or clock, and includes {each}")
    return found


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    listed = [os.path.join(folder, name) for top in ("src", "include") for folder, _, names in sorted(os.walk(top))
              for name in sorted(names) if name.endswith((".cpp", ".hpp"))]
    complaints = [text for path in listed for text in complaints_about(path)]
    print("\n".join(complaints) or f"{len(listed)} files include in one direction")
    return 1 if complaints or not listed else 0


if __name__ == "__main__":
    sys.exit(main())
