#!/usr/bin/python3
"""Compiles the whole tree by another compiler, as the release build has it, without keeping anything:

    tests/compilers.py clang++        clang, syntax only
    tests/compilers.py ROOT           g++ with the headers of its own Debian release, unpacked in ROOT; the library and
                                      the command optimised, the rest syntax only

Every command of build/release/compile_commands.json is repeated with the same warnings as errors.
"""

import concurrent.futures
import glob
import json
import os
import shlex
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SYSTEM = "/usr/include"


# Files that are compiled together have their anonymous namespaces in common. Of that clang's -Wshadow complains.
def with_clang(words, source):
    return ["clang++", "-fsyntax-only", *words, "-Wno-shadow", source]


def with_unpacked(root):
    """The compiler proper of another release runs by that release's loader; driver, assembler and linker are not needed."""
    loader = glob.glob(f"{root}/usr/lib/*/ld-linux*.so.*")[0]
    libraries = os.path.dirname(loader)
    triple = os.path.basename(libraries)
    gcc = sorted(glob.glob(f"{root}/usr/libexec/gcc/*/*/cc1plus"))[-1]
    version = os.path.basename(os.path.dirname(gcc))
    headers = [f"{root}/usr/include/c++/{version}", f"{root}/usr/include/{triple}/c++/{version}",
               f"{root}/usr/include/c++/{version}/backward", f"{root}/usr/lib/gcc/{triple}/{version}/include",
               f"{root}/usr/include/{triple}", f"{root}/usr/include"]
    flags = [word for each in headers for word in ("-isystem", each)]

    def command(words, source):
        if "/src/" not in source:
            words = [*words, "-fsyntax-only"]
        words = [word.replace(SYSTEM, f"{root}{SYSTEM}") if word.startswith(SYSTEM) else word for word in words]
        return [loader, "--library-path", libraries, gcc, "-quiet", "-nostdinc", "-D_GNU_SOURCE", *words, *flags,
                "-o", os.devnull, source]

    return command


def words_of(entry):
    """The flags of a command, without compiler, launcher, output and source."""
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if os.path.basename(word) in ("g++", "c++")) + 1:]
    kept = []
    skip = False
    for word in words:
        if not skip and word not in ("-o", "-c", entry["file"]):
            kept.append(word)
        skip = word == "-o"
    return kept


def compile_one(command, entry):
    done = subprocess.run(command(words_of(entry), entry["file"]), cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], done.returncode, done.stderr


def main():
    compiler = sys.argv[1]
    command = with_clang if compiler == "clang++" else with_unpacked(os.path.abspath(compiler))
    with open(os.path.join(ROOT, "build", "release", "compile_commands.json")) as file:
        entries = [each for each in json.load(file) if not each["file"].endswith(".c")]
    entries = {each["file"]: each for each in entries}.values()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, status, text in pool.map(lambda each: compile_one(command, each), entries):
            if status or "warning:" in text:
                failed += 1
                print(f"{os.path.relpath(source, ROOT)}:\n{text}")
    print(f"{len(entries) - failed} passed, {failed} failed")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
