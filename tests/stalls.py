#!/usr/bin/env python3
"""Runs a command while the whole machine stalls again and again, as a shared or sleepy one does.

    tests/stalls.py ctest --preset release -L integration

On every core a process of the highest priority takes it for itself for a while, on all of them at once: nobody else runs,
neither tests nor servers. A test that fails by that depends on how fast the machine is. Needs root.
"""

import multiprocessing
import os
import subprocess
import sys
import time

LENGTH = 0.9  # seconds; the kernel lets nobody of that priority have more of a second than 0.95
EVERY = 6.0


def stall(core):
    os.sched_setaffinity(0, {core})
    while True:
        time.sleep(EVERY - time.time() % EVERY)
        end = time.time() + LENGTH
        while time.time() < end:
            pass


def main(command):
    if not command:
        sys.exit(__doc__)
    stallers = [multiprocessing.Process(target=stall, args=(core,), daemon=True) for core in os.sched_getaffinity(0)]
    for each in stallers:
        each.start()
    try:
        for each in stallers:
            os.sched_setscheduler(each.pid, os.SCHED_FIFO, os.sched_param(50))
        return subprocess.run(command, check=False).returncode
    except PermissionError:
        sys.exit("stalls: only root may take a core for itself")
    finally:
        for each in stallers:
            each.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
