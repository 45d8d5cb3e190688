"""Keeps every core awake with a process of the lowest priority, which gives way to anybody at once.

Waking an idle core costs more than a round trip on this machine; kept awake, what is left is the work itself.
"""

import multiprocessing
import os


def spin(core):
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(1_000_000):
            pass


class Spinners:
    def __enter__(self):
        fork = multiprocessing.get_context("fork")
        self.processes = [fork.Process(target=spin, args=(core,), daemon=True) for core in os.sched_getaffinity(0)]
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, *_):
        spun = all(process.is_alive() for process in self.processes)
        for process in self.processes:
            process.terminate()
            process.join()
        if not spun:
            raise RuntimeError("the cores were not kept awake: a spinner has ended")
