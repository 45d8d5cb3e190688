"""What ../interop/run skips and what fails it: only a missing toolchain or package may be skipped."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
NEEDED = ("bash", "cat", "cmp", "cp", "dirname", "env", "grep", "head", "mkdir", "sed", "sleep", "sort")
GO_VERSION = '[ "$1" = env ] && { echo go1.99; exit; }; '


class Run(unittest.TestCase):
    """`run` in a tree of its own, with the tools that the test puts into PATH and no others."""

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.tools = os.path.join(self.directory, "bin")
        os.mkdir(self.tools)
        for name in NEEDED:
            os.symlink(shutil.which(name), os.path.join(self.tools, name))
        self.script = os.path.join(self.directory, "tests", "interop", "run")
        shutil.copytree(HERE, os.path.dirname(self.script))
        self.path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", self.path)
        os.environ["PATH"] = self.tools
        os.environ["HOLDFAST_FETCH_PAUSE"] = "0"
        loader = importlib.machinery.SourceFileLoader("interop_run", self.script)
        self.run_ = importlib.util.module_from_spec(importlib.util.spec_from_loader("interop_run", loader))
        loader.exec_module(self.run_)

    def tool(self, name, does):
        path = os.path.join(self.tools, name)
        with open(path, "w") as file:
            file.write("#!/usr/bin/env bash\n" + does + "\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def set_up(self, *folders):
        """What is missing, what is broken, and whether the run fails."""
        with contextlib.redirect_stderr(io.StringIO()):
            missing, broken = self.run_.set_up(set(folders))
        return missing, broken, bool(self.run_.failures)

    def test_a_missing_toolchain_is_skipped_with_a_word(self):
        self.assertEqual(self.set_up("go"), ({"go": "no go on this machine"}, {}, False))
        for folder, tool in (("node", "npm"), ("java", "mvn")):
            self.assertEqual(self.set_up(folder)[0], {folder: f"no {tool} on this machine"})

    def test_a_toolchain_that_is_too_old_is_skipped(self):
        self.tool("go", "echo go1.20")
        self.assertEqual(self.set_up("go"), ({"go": "go1.20 is older than go1.26.0"}, {}, False))

    def test_packages_that_cannot_be_fetched_are_skipped_beside_others(self):
        self.tool("go", GO_VERSION + "[ $1 = mod ] && { echo no network; exit 1; }; exit 0")
        self.tool("python3", "exit 0")
        self.assertEqual(self.set_up("go", "python"), ({"go": "the Go modules cannot be fetched"}, {}, False))

    def test_a_download_is_tried_twice(self):
        self.tool("go", GO_VERSION + f'[ $1 = build ] || [ -e {self.directory}/once ] || '
                  f'{{ echo > {self.directory}/once; exit 1; }}')
        self.assertEqual(self.set_up("go"), ({}, {}, False))

    def test_no_peer_at_all_fails_if_there_are_toolchains(self):
        self.tool("go", GO_VERSION + "exit 1")
        missing, _, failed = self.set_up("go", "node")
        self.assertEqual(list(missing), ["go", "node"])
        self.assertTrue(failed)

    def test_a_worker_that_does_not_compile_fails(self):
        self.tool("go", GO_VERSION + "[ $1 = mod ] && exit 0; echo main.go:1: undefined: gone; exit 1")
        self.tool("mvn", "exit 0")
        self.tool("javac", "echo Worker.java:1: error; exit 1")
        for folder in ("go", "java"):
            missing, broken, failed = self.set_up(folder)
            self.assertEqual((missing, list(broken), failed), ({}, [folder], True))
            self.run_.failures.clear()

    def test_packages_that_are_not_those_of_the_lock_file_fail(self):
        self.tool("go", GO_VERSION + "[ $1 = mod ] && echo 'verifying module: checksum mismatch' && exit 1; exit 0")
        self.assertTrue(self.set_up("go")[2])
        self.run_.failures.clear()
        self.tool("npm", "echo npm error code EINTEGRITY; exit 1")
        self.assertTrue(self.set_up("node")[2])

    def test_the_command_fails_and_says_why(self):
        self.tool("go", GO_VERSION + "[ $1 = mod ] && exit 0; echo main.go:1: undefined: gone; exit 1")
        done = subprocess.run([sys.executable, self.script, "redsync"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("undefined: gone", done.stderr)
        os.remove(os.path.join(self.tools, "go"))
        done = subprocess.run([sys.executable, self.script, "redsync"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, "interop: without redsync: no go on this machine\n"))


if __name__ == "__main__":
    unittest.main()
