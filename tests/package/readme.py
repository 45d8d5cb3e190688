"""The code blocks of a README: as a list, or as one script that does what a reader would do, from top to bottom.

    readme.py list README.md      every block, one JSON line each: kind and text
    readme.py script README.md    a bash script
    readme.py programs README.md FOLDER    writes the programs there

sh is run as it stands, all of it in one shell. cpp is a whole program that names its file in its first line; it is
written there, compiled and run, with HOLDFAST_TEST_URL instead of the address in the text; where several servers are
named, in sh too, those of HOLDFAST_TEST_SERVERS stand for them. cmake is the CMakeLists.txt of a
project of the programs before it. Any other block, fenced or indented, is an error: nobody would run it.
"""
import json
import os
import re
import shlex
import sys

ADDRESS = "redis://127.0.0.1:6379"
SEVERAL = [f"redis://{host}.example:6379" for host in "abc"]


def fail(line, why):
    sys.exit(f"{sys.argv[2]}:{line}: {why}")


def blocks(path):
    """(line, kind, text) of every block."""
    found, kind, text, opened = [], None, [], 0
    empty_before = True
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        fence = re.match(r"\s*(```|~~~)(.*)", line)
        if kind is None and fence:
            kind, text, opened = fence[2].strip(), [], number
        elif kind is not None and fence:
            found.append((opened, kind, "".join(text)))
            kind = None
        elif kind is not None:
            text.append(line)
        elif empty_before and re.match(r"(    |\t)\S", line):
            fail(number, "an indented code block is not run; use a fence")
        empty_before = not line.strip()
    if kind is not None:
        fail(opened, "never closed")
    return found


def at_our_servers(text):
    for theirs, ours in zip(SEVERAL, os.environ.get("HOLDFAST_TEST_SERVERS", "").split()):
        text = text.replace(theirs, ours)
    return text


def program_name(line, text):
    name = re.match(r"// (\w+)\.cpp\n", text)
    if not name:
        fail(line, "the first line of a program is to name its file")
    return name[1]


def run_cpp(line, text):
    name = program_name(line, text)
    if ADDRESS not in text and not all(server in text for server in SEVERAL):
        fail(line, f"a program is to use {ADDRESS}, or all of {SEVERAL}")
    program = shlex.quote(at_our_servers(text).replace(ADDRESS, "@URL@"))
    return f"""printf '%s' {program} | sed "s|@URL@|$HOLDFAST_TEST_URL|" >{name}.cpp
g++ -std=c++20 -Wall -Wextra -Werror {name}.cpp -o {name}.checked $(pkg-config --cflags --libs holdfast)
./{name}.checked
"""


def run_cmake(line, text):
    target = re.search(r"add_executable\((\w+)", text)
    if not target:
        fail(line, "a project is to have a program")
    return f"""printf '%s' {shlex.quote(text)} >CMakeLists.txt
cmake -S . -B made -DCMAKE_PREFIX_PATH="$HOME/.local"
cmake --build made
made/{target[1]}
"""


def script(found):
    kinds = {"sh": lambda line, text: at_our_servers(text), "cpp": run_cpp, "cmake": run_cmake}
    print("set -euo pipefail")
    for line, kind, text in found:
        if kind not in kinds:
            fail(line, f"a block of '{kind}' is not run")
        print(f"echo 'block of line {line}'")
        print(kinds[kind](line, text))
        print(f"echo 'done with line {line}'")


if sys.argv[1] == "list":
    for _, kind, text in blocks(sys.argv[2]):
        print(json.dumps([kind, text]))
elif sys.argv[1] == "programs":
    for line, kind, text in blocks(sys.argv[2]):
        if kind == "cpp":
            with open(os.path.join(sys.argv[3], program_name(line, text) + ".cpp"), "w", encoding="utf-8") as file:
                file.write(text)
else:
    script(blocks(sys.argv[2]))
