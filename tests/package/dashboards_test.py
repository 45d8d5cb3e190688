#!/usr/bin/python3
"""Every series that the dashboard and the alert rules name exists: `holdfast metrics` or prometheus_text() write it.

    dashboards_test.py TREE
"""

import glob
import json
import os
import re
import sys

SERIES = re.compile(r"\bholdfast_[a-z_]+")
WRITERS = ("src/cli/inspect/output/prometheus_text.cpp", "src/api/runtime/metrics.cpp")


def written(tree):
    """The series with their types, as the sources name them in quotes."""
    names = set()
    for path in WRITERS:
        with open(os.path.join(tree, path)) as file:
            text = file.read()
        for name in re.findall(r'"(holdfast_[a-z_]+)"', text):
            names.add(name)
            if name.endswith("_wait_seconds") and name.startswith("holdfast_client") or name.endswith("hold_time_seconds"):
                names.update(name + end for end in ("_bucket", "_sum", "_count"))
    return names


def named(tree):
    """Pairs of a series and where it is named."""
    with open(os.path.join(tree, "packaging/grafana/holdfast.json")) as file:
        board = json.load(file)
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            for name in SERIES.findall(target["expr"]):
                yield name, "panel " + panel["title"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            for name in SERIES.findall(variable["query"]["query"]):
                yield name, "variable " + variable["name"]
    for path in glob.glob(os.path.join(tree, "packaging/prometheus/*.yml")):
        with open(path) as file:
            for line in file:
                if "expr:" in line:
                    for name in SERIES.findall(line):
                        yield name, line.strip()


def main():
    tree = sys.argv[1]
    known, used = written(tree), list(named(tree))
    wrong = [f"{where}: nobody writes {name}" for name, where in used if name not in known]
    # A series that no panel shows is likely forgotten.
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name, _ in used}
    base = {name for name in known if not re.search(r"_(bucket|sum|count)$", name)}
    hidden = sorted(base - shown - {"holdfast_holders", "holdfast_client_votes_lost_total"})
    wrong += [f"neither the dashboard nor a rule uses {name}" for name in hidden]
    print("\n".join(wrong) or f"{len(used)} uses of {len(shown)} series, all written")
    return 1 if wrong or len(used) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
