"""Runs one workload: all contestants in turn, round after round, and reduces what they did to figures.

The order is drawn anew for every round, and every round has a slice with the cores as they are and one with the cores
kept awake. A ratio is taken to the floor's slice of the same round and the same cores, so that weather on the machine
hits both; what is reported is the median over the rounds, with its range.
"""

import math
import random
import sys
from statistics import median

from . import peers, servers
from .contestants import Field
from .spinner import Spinners
from .team import Silent
from .workloads import HIGHER

AS_THEY_ARE, KEPT_AWAKE = "as they are", "kept awake"


class Progress:
    """One line that is rewritten on a terminal; elsewhere one line for each step that matters."""

    def __init__(self, title):
        self.title = title
        self.terminal = sys.stderr.isatty()
        if not self.terminal:
            print(f"bench: {title}", file=sys.stderr, flush=True)

    def show(self, text):
        if self.terminal:
            print(f"\r\033[K{self.title}: {text}", end="", file=sys.stderr, flush=True)

    def say(self, text):
        print(("\r\033[K" if self.terminal else "") + f"bench: {self.title}: {text}", file=sys.stderr, flush=True)

    def end(self):
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Entry:
    """One contestant's slices of one workload with the cores in one state."""

    def __init__(self, contestant, cores):
        self.contestant, self.cores = contestant, cores
        self.rounds = []  # one dict of numbers each

    def middle(self, name):
        values = [each[name] for each in self.rounds if name in each and not math.isnan(each[name])]
        return median(values) if values else None

    def all(self, name):
        return [each[name] for each in self.rounds if name in each and not math.isnan(each[name])]


class Contest:
    def __init__(self, workload, options):
        self.workload, self.options = workload, options
        self.progress = Progress(workload.name)
        self.skipped = []  # (who, why)

    def run(self):
        started = [servers.Redis() for _ in range(self.workload.servers)]
        self.server = started[0]
        self.teams = []
        try:
            field = Field(self.options.programs, self.workload, started)
            self.gather(field)
            if not any(team.name == "holdfast" for team in self.teams):
                raise RuntimeError("holdfast did not start")
            return self.play()
        finally:
            self.progress.end()
            for team in self.teams:
                team.stop()
            for server in started:
                server.stop()

    def gather(self, field):
        self.progress.show("starting")
        self.floor = field.floor()
        self.teams = [self.floor] if self.floor else []
        self.join("holdfast", field.holdfast)
        self.teams += field.variants() + field.second_floors()
        if self.options.peers:
            for name in self.workload.peers:
                self.join(name, lambda name=name: peers.team(name, field))

    def join(self, name, make):
        try:
            self.teams.append(make())
        except (Silent, RuntimeError, OSError) as problem:
            self.skip(name, problem)

    def skip(self, name, why):
        self.skipped.append((name, str(why)))
        self.progress.say(f"without {name}: {why}")

    def play(self):
        entries = {}
        rounds = 1 if self.workload.once else self.options.rounds * self.workload.round_factor
        for number in range(rounds):
            for cores in (AS_THEY_ARE, KEPT_AWAKE):
                if cores == KEPT_AWAKE:
                    with Spinners():
                        self.play_round(entries, number, rounds, cores)
                else:
                    self.play_round(entries, number, rounds, cores)
        return list(entries.values())

    def play_round(self, entries, number, rounds, cores):
        # The same for everyone who repeats it, but nobody always after the same one.
        order = random.Random(f"{self.workload.name} {number} {cores}").sample(self.teams, len(self.teams))
        slices = {}
        for team in order:
            self.progress.show(f"round {number + 1} of {rounds}, cores {cores}: {team.name}")
            try:
                slices[team.name] = self.slice_of(team)
            except Silent as problem:
                self.skip(team.name, problem)
                self.teams.remove(team)
                team.stop()
        for name, numbers in self.reduce(slices).items():
            entries.setdefault((name, cores), Entry(name, cores)).rounds.append(numbers)

    def slice_of(self, team):
        if self.workload.once:
            measured = team.run(self.options.hold)
            locks = self.workload.words["locks"]
            measured.reports[0]["server_bytes_per_lock"] = self.server.used_memory() / locks
            measured.reports[0]["gone"] = locks - self.server.count_locks(f"many:{i}" for i in range(locks))
            return measured
        return team.run(self.options.seconds * self.workload.slice_factor)

    def reduce(self, slices):
        """Name -> numbers of one round."""
        floor = slices.get(self.floor.name) if self.floor else None
        floor_figure = self.floor_figure(floor, slices.get("holdfast")) if floor else None
        result = {}
        for name, measured in slices.items():
            numbers = {"value": self.workload.figure(measured), **measured.costs(), **self.workload.notes(measured)}
            if floor:
                numbers["floor"] = floor_figure
                numbers["ratio"] = numbers["value"] / floor_figure
                costs = floor.costs()
                numbers["client_cpu_ratio"] = numbers["client_cpu_us"] / costs["client_cpu_us"]
                if "commands_per_cycle" in numbers and costs.get("commands_per_cycle"):
                    numbers["commands_ratio"] = numbers["commands_per_cycle"] / costs["commands_per_cycle"]
            for second in self.workload.second_floors:
                if second in slices:
                    numbers["second_ratio"] = numbers["value"] / self.workload.figure(slices[second])
            result[name] = numbers
        return result

    def floor_figure(self, floor, holdfast):
        added = self.workload.floor_adds(holdfast) if holdfast else 0.0
        return self.workload.figure(floor) + added


def to_json(workload, entries):
    """One flat object per contestant and state of the cores, in the form that `./dev bench connection` has."""
    own = {each.cores: each.middle("value") for each in entries if each.contestant == "holdfast"}
    objects = []
    for entry in entries:
        one = {"bench": workload.name, "contestant": entry.contestant, "cores": entry.cores,
               "holdfast": own.get(entry.cores), "value": entry.middle("value"), "floor": entry.middle("floor"),
               "ratio": entry.middle("ratio")}
        ratios = entry.all("ratio")
        one["ratio_min"], one["ratio_max"] = (min(ratios), max(ratios)) if ratios else (None, None)
        targets = [target for target in workload.targets if target.concerns(entry.contestant, entry.cores)]
        if targets or entry.contestant == "holdfast":
            for target in targets:
                key = "target" if target.of == "ratio" else f"{target.of}_target"
                one[key] = target.bound
            one["reached"] = all(target.reached(entry.middle(target.of)) for target in targets)
        one["rounds"] = len(entry.rounds)
        for name in sorted({key for each in entry.rounds for key in each} - set(one)):
            one[name] = entry.middle(name)
        one["better"], one["unit"] = workload.better, workload.unit
        objects.append({key: rounded(value) for key, value in one.items()})
    return objects


def rounded(value):
    return float(f"{value:.6g}") if isinstance(value, float) else value


def behind(workload, objects):
    """Peers that holdfast does not lead, with the cores' state."""
    ours = {each["cores"]: each["value"] for each in objects if each["contestant"] == "holdfast"}
    for each in objects:
        if each["contestant"] in peers.NAMES and each["value"] is not None:
            ahead = each["value"] > ours[each["cores"]]
            if ahead == (workload.better == HIGHER):
                yield each
