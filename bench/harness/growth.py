"""How holdfast's cost grows: with callers, with waiters for one lock, with locks held, with processes.

Each is a row of points, measured in turn, round after round, like everything here; drawn as a line.
"""

import json
import os
from dataclasses import dataclass, field
from statistics import median
from typing import Callable

from . import servers, workloads
from .contest import Progress
from .contestants import Field
from .report import number


@dataclass
class Growth:
    name: str
    title: str
    x_title: str
    unit: str
    points: tuple
    shape: Callable            # of a point: what changes in the workload
    figure: Callable
    words: dict = field(default_factory=dict)


def per_second(measured):
    return measured.per_second()


QUEUE = {"names": "one", "section_us": 1000, "visits": 1}

ALL = {each.name: each for each in (
    Growth("growth.callers", "Asynchronous callers in one process, each with a lock of its own", "callers", "cycles/s",
           (1, 2, 4, 8, 16, 32, 64, 128, 256), lambda n: {"callers": n}, per_second, {"face": "async"}),
    Growth("growth.waiters", "Threads in 4 processes that wait for one lock, 1 ms inside", "callers", "us, median gap",
           (4, 8, 16, 32, 64, 128, 256), lambda n: {"callers": n // 4, "processes": 4}, workloads.median_gap, QUEUE),
    Growth("growth.processes", "Processes of 4 threads, each thread with a lock of its own", "processes", "cycles/s",
           (1, 2, 4, 8, 16), lambda n: {"processes": n}, per_second, {"callers": 4}),
    Growth("growth.held", "Locks held and renewed by one client, lease 30 s", "locks", "% of a core",
           (1000, 3000, 10_000, 30_000, 100_000), lambda n: {"locks": n},
           lambda m: m.client_cpu_us / m.seconds / 1e4),
)}


def workload_of(growth, point):
    words = {**growth.words, **growth.shape(point)}
    name = "many" if "locks" in words else growth.name
    return workloads.Workload(name, growth.title, growth.unit, workloads.HIGHER, growth.figure, "",
                              processes=words.pop("processes", 1), words=words)


def run(growth, options):
    """One object per point."""
    progress = Progress(growth.name)
    held = "locks" in growth.shape(growth.points[0])
    rounds, seconds = (1, options.hold / 3) if held else (options.rounds, options.seconds)
    values = {point: [] for point in growth.points}
    costs = {point: [] for point in growth.points}
    for round_number in range(rounds):
        for point in growth.points:
            progress.show(f"round {round_number + 1} of {rounds}: {point} {growth.x_title}")
            server = servers.Redis()
            team = None
            try:
                team = Field(options.programs, workload_of(growth, point), [server]).holdfast()
                measured = team.run(seconds)
                values[point].append(growth.figure(measured))
                costs[point].append(measured.costs())
            finally:
                if team:
                    team.stop()
                server.stop()
    progress.end()
    return [{"bench": growth.name, "contestant": "holdfast", growth.x_title: point, "x": point,
             "value": median(values[point]), "lowest": min(values[point]), "highest": max(values[point]),
             "rounds": rounds, **middle(costs[point]), "unit": growth.unit} for point in growth.points]


def middle(costs):
    return {name: median(each[name] for each in costs) for name in costs[0]}


WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 340, 80, 64, 52


def plot(growth, objects):
    """Points at equal distances, because each is a multiple of the one before; the range of the rounds behind."""
    most = max(each["highest"] for each in objects) or 1
    step = (WIDTH - LEFT - 40) / max(1, len(objects) - 1)

    def place(index, value):
        return LEFT + index * step, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text x="16" y="24" font-size="15" font-weight="bold" fill="#222">{growth.title}</text>',
           f'<text x="16" y="44" fill="#555">{growth.unit}</text>']
    for part in range(5):
        _, y = place(0, most * part / 4)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - 20}" y2="{y:.1f}" stroke="#e2e2e2"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{number(most * part / 4)}</text>')
    for index, each in enumerate(objects):
        x, low = place(index, each["lowest"])
        _, high = place(index, each["highest"])
        out.append(f'<line x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}" stroke="#e3a35c" stroke-width="6"/>')
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - 30}" text-anchor="middle" fill="#333">{each["x"]:,}</text>')
    line = " ".join("{:.1f},{:.1f}".format(*place(i, each["value"])) for i, each in enumerate(objects))
    out.append(f'<polyline points="{line}" fill="none" stroke="#c8741a" stroke-width="2"/>')
    for index, each in enumerate(objects):
        x, y = place(index, each["value"])
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="#c8741a"/>')
    out.append(f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 10}" text-anchor="middle" fill="#555">{growth.x_title}</text>')
    return "\n".join(out + ["</svg>", ""])


def show(growth, objects):
    print(f"\n{growth.name}: {growth.title}")
    print(f"  {growth.x_title:>10}  {growth.unit:>16}  {'client CPU us':>14}  {'server CPU us':>14}  commands")
    for each in objects:
        print(f"  {each['x']:>10,}  {number(each['value']):>16}  {each['client_cpu_us']:>14.1f}"
              f"  {each['server_cpu_us']:>14.1f}  {each.get('commands_per_cycle', 0):.2f}")


def write_results(directory, growth, objects):
    os.makedirs(directory, exist_ok=True)
    base = os.path.join(directory, growth.name)
    with open(base + ".json", "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(each) for each in objects) + "\n]\n")
    with open(base + ".svg", "w") as file:
        file.write(plot(growth, objects))
