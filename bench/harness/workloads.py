"""What is measured: each workload's shape, its figure, its floor and what holdfast has to reach.

A workload is a table entry. `words` are what every contestant of it is told on its command line (see
contestants/contestant.hpp); a peer that cannot do what they ask does not take part.
"""

from dataclasses import dataclass, field
from statistics import median
from typing import Callable

HIGHER, LOWER = "higher", "lower"


@dataclass
class Target:
    """A bound on one of a contestant's figures; `of` is `ratio` or a name among the costs and notes."""
    of: str
    better: str
    bound: float
    who: str = "holdfast"
    cores: str = ""            # in which state of the cores; empty: in both

    def concerns(self, contestant, cores):
        return self.who == contestant and self.cores in ("", cores)

    def reached(self, value):
        if value is None:
            return False  # what was not measured was not shown
        return value >= self.bound if self.better == HIGHER else value <= self.bound

    def text(self):
        return f"{self.of} {'at least' if self.better == HIGHER else 'at most'} {self.bound:g}"


@dataclass
class Workload:
    name: str
    title: str                 # for people
    unit: str
    better: str
    figure: Callable           # of a slice
    floor: str                 # name of the floor, see contestants.py; empty: there is none
    processes: int = 1
    words: dict = field(default_factory=dict)
    targets: list = field(default_factory=list)
    notes: Callable = lambda measured: {}
    floor_adds: Callable = lambda measured: 0.0  # to the floor, from what holdfast's own slice says
    peers: tuple = ()
    second_floors: dict = field(default_factory=dict)  # further floors of bare sockets: name -> other words
    variants: dict = field(default_factory=dict)  # further runs of holdfast: name -> other words; `processes`: how many
    servers: int = 1
    times_script: str = ""     # acquire or release: how long the server takes for it is measured, too
    slice_factor: float = 1.0  # some need more time for the same number of samples
    round_factor: int = 1      # some need more rounds
    once: bool = False         # one round of long slices


def latency_notes(measured):
    return {"p99": measured.reports[0].get("p99_us", float("nan"))}


def contention_notes(measured):
    visits = measured.visits()
    changes = len(measured.gaps())
    return {"cycles_per_s": measured.per_second(), "changes_of_holder_per_s": changes / measured.seconds,
            "fairness": measured.fairness(), "same_holder_share": 1 - changes / max(1, len(visits) - 1)}


def handovers_per_second(measured):
    return len(measured.gaps()) / measured.seconds


def median_gap(measured):
    gaps = measured.gaps()
    return median(gaps) if gaps else float("nan")


def gap_notes(measured):
    gaps = sorted(measured.gaps())
    return {**contention_notes(measured), "script_us": one_script_us(measured), "p99": gaps[int(len(gaps) * 0.99)] if gaps else float("nan")}


def one_script_us(measured):
    """What the server itself says the script takes that hands a lock over."""
    return median(measured.script_times_us) if measured.script_times_us else 0.0


def many_notes(measured):
    report = measured.reports[0]
    return {"renewals_per_s": measured.per_second(),
            "missed": report["losses"] + report["failed_renewals"] + report["gone"],
            "bytes_per_lock": report["bytes_per_lock"], "server_bytes_per_lock": report["server_bytes_per_lock"],
            **server_notes(measured)}


def server_notes(measured):
    return {"server_core_percent": measured.server_cpu_us / measured.seconds / 1e4}


REDIS_PEERS = ("redis-py", "redlock", "redis-semaphore", "redsync", "rueidislock")
ALL_PEERS = REDIS_PEERS + ("redisson", "etcd", "curator")
# One caller and one server: where the scheduler puts the two, on one core or on both, matters more than anything else
# and stays the same for a while. Therefore there are many short slices instead of a few long ones.
BRIEF = {"slice_factor": 0.2, "round_factor": 5}
# The end of a lease waits for no answer; release() does, as the other locks' do.
TOLD_NAME = "holdfast, release()"
TOLD = {"variants": {TOLD_NAME: {"end": "told"}}}
# Sockets that look for an answer before they block do not pay for waking a core.
LOOKING = "bare sockets that look 50 us"
ONE_CALLER = {**BRIEF, **TOLD, "second_floors": {LOOKING: {"look": 50}}, "targets": [
    Target("ratio", LOWER, 1.25),
    Target("ratio", LOWER, 0.5, TOLD_NAME, "as they are"), Target("ratio", LOWER, 1.0, TOLD_NAME, "kept awake"),
    Target("second_ratio", LOWER, 1.3, TOLD_NAME)]}
QUEUE = {"names": "one", "section_us": 5000, "rest_us": 5000, "visits": 1}

ALL = {each.name: each for each in (
    Workload("uncontended.tcp", "One caller over TCP: acquire and release", "us, p50", LOWER, lambda m: m.p50(),
             "bare", words={"link": "tcp"}, notes=latency_notes, peers=ALL_PEERS, **ONE_CALLER),
    Workload("uncontended.unix", "One caller over a unix socket: acquire and release", "us, p50", LOWER,
             lambda m: m.p50(), "bare", words={"link": "unix"}, notes=latency_notes, peers=REDIS_PEERS, **ONE_CALLER),
    Workload("parallel.async", "64 asynchronous callers, each with a lock of its own", "cycles/s", HIGHER,
             lambda m: m.per_second(), "redis-benchmark", words={"callers": 64, "face": "async"},
             peers=REDIS_PEERS + ("etcd",),
             targets=[Target("ratio", HIGHER, 0.8), Target("client_cpu_ratio", LOWER, 2.0)]),
    Workload("parallel.threads", "64 threads, each with a lock of its own", "cycles/s", HIGHER,
             lambda m: m.per_second(), "redis-benchmark", words={"callers": 64}, peers=("redis-py", "redisson", "curator"),
             targets=[Target("ratio", HIGHER, 0.5)]),
    Workload("contended", "4 processes x 4 callers want one lock, empty section", "changes of holder/s", HIGHER,
             handovers_per_second, "ping-pong", processes=4, words={"names": "one", "callers": 4, "visits": 1},
             notes=contention_notes, peers=ALL_PEERS),
    Workload("semaphore", "4 processes x 16 callers want one of 8 permits, empty section", "cycles/s", HIGHER,
             lambda m: m.per_second(), "ping-pong", processes=4,
             words={"callers": 16, "kind": "semaphore", "permits": 8}),
    Workload("handover", "4 processes x 4 callers, 5 ms inside, 5 ms outside: gap between two holders", "us, median",
             LOWER, median_gap, "ping-pong", processes=4, words={"callers": 4, **QUEUE}, notes=gap_notes,
             floor_adds=one_script_us, peers=ALL_PEERS, slice_factor=2, times_script="release", **TOLD,
             targets=[Target("ratio", LOWER, 1.3), Target("commands_per_cycle", LOWER, 2.05)]),
    # With pauses of one length, a former holder comes back just when its successor releases, and the two disturb each
    # other; most work is not like that.
    Workload("handover.uneven", "The same, 5 ms inside, 7.5 ms outside: gap between two holders", "us, median",
             LOWER, median_gap, "ping-pong", processes=4, words={"callers": 4, **QUEUE, "rest_us": 7500}, notes=gap_notes,
             floor_adds=one_script_us, slice_factor=2, times_script="release",
             targets=[Target("ratio", LOWER, 1.3), Target("commands_per_cycle", LOWER, 2.05)]),
    Workload("crowd", "500 waiters from 10 processes, 5 ms inside: gap between two holders", "us, median", LOWER,
             median_gap, "16 callers", processes=10, words={"callers": 50, **QUEUE}, notes=gap_notes,
             peers=ALL_PEERS, slice_factor=5, times_script="release",
             targets=[Target("ratio", LOWER, 1.3), Target("commands_ratio", LOWER, 1.3)]),
    Workload("many", "100,000 locks held and renewed by one client", "% of a core", LOWER,
             lambda m: m.client_cpu_us / m.seconds / 1e4, "", words={"locks": 100_000}, notes=many_notes, once=True,
             targets=[Target("value", LOWER, 10), Target("missed", LOWER, 0), Target("bytes_per_lock", LOWER, 600),
                      Target("renewals_per_s", HIGHER, 100_000 / 30)]),
    Workload("readmostly", "95 % readers, 64 callers in 4 processes on one shared_mutex", "cycles/s", HIGHER,
             lambda m: m.per_second(), "bare", processes=4, words={"kind": "shared", "writers": 5, "callers": 16},
             notes=server_notes, variants={"holdfast, 1 process": {"processes": 1}, "holdfast, 2 processes": {"processes": 2}}, peers=("redisson", "curator"),
             targets=[Target("commands_per_cycle", LOWER, 2.05)]),
    Workload("quorum", "A majority of 3 servers, one caller: acquire and release", "us, p50", LOWER,
             lambda m: m.p50(), "bare", servers=3, notes=latency_notes, peers=("redlock", "redis-semaphore", "redsync"), **BRIEF, **TOLD),
)}
