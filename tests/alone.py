#!/usr/bin/python3
"""Checks that every source file and every header of src and include compiles by itself, with clang.

The build compiles whole folders as one translation unit, so it would not notice a file that lives on what its
neighbour includes. Here each is read alone, syntax only. A header whose own source file includes it first is checked by
that file.
"""

import concurrent.futures
import os
import subprocess
import sys

FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", '-DHOLDFAST_VERSION=""', "-Iinclude", "-Isrc"]


def first_include(path):
    with open(path) as file:
        return next((line.split('"')[1] for line in file if line.startswith('#include "')), None)


def compile_alone(path):
    source = [path] if path.endswith(".cpp") else ["-include", path, "-x", "c++", "/dev/null"]
    done = subprocess.run(["clang++", "-fsyntax-only", *FLAGS, *source], capture_output=True, text=True)
    return path, done.returncode, done.stderr


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    listed = subprocess.run(["git", "ls-files", "src/*.cpp", "src/*.hpp", "include/*.hpp"], capture_output=True, text=True,
                            check=True).stdout.split()
    checked_by_source = {f"src/{first_include(each)}" for each in listed if each.endswith(".cpp")}
    paths = [each for each in listed if each not in checked_by_source]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, status, text in pool.map(compile_alone, paths):
            if status != 0:
                failed += 1
                print(f"{path} does not compile by itself:\n{text}")
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
