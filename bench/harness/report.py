"""Shows results: a table on the terminal, a Markdown table and an SVG chart per workload, and JSON for programs."""

import json
import os
import re
import platform
import subprocess
from html import escape

COLUMNS = (("ratio", "of the floor", "{:.2f}"), ("second_ratio", "of the second", "{:.2f}"), ("commands_per_cycle", "commands", "{:.2f}"),
           ("client_cpu_us", "client CPU us", "{:.1f}"), ("server_cpu_us", "server CPU us", "{:.1f}"))
EXTRAS = (("p99", "p99 us", "{:.0f}"), ("cycles_per_s", "cycles/s", "{:.0f}"),
          ("changes_of_holder_per_s", "changes of holder/s", "{:.0f}"), ("fairness", "min/max share", "{:.2f}"),
          ("renewals_per_s", "renewals/s", "{:.0f}"), ("missed", "renewals missed", "{:.0f}"),
          ("bytes_per_lock", "bytes a lock, client", "{:.0f}"), ("server_bytes_per_lock", "server", "{:.0f}"),
          ("server_core_percent", "server, % of a core", "{:.1f}"))


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"


def table(workload, objects):
    """Header and rows, as text."""
    columns = [each for each in COLUMNS + EXTRAS if any(row.get(each[0]) is not None for row in objects)]
    header = ["", "cores", workload.unit] + [title for _, title, _ in columns]
    rows = []
    for row in ordered(workload, objects):
        cells = [row["contestant"], row["cores"], number(row["value"])]
        for key, _, form in columns:
            text = "-" if row.get(key) is None else form.format(row[key])
            if key == "ratio" and row.get("ratio_min") is not None:
                text += f" ({row['ratio_min']:.2f}..{row['ratio_max']:.2f})"
            cells.append(text)
        rows.append(cells)
    return header, rows


def ordered(workload, objects):
    """The two states of the cores one after the other; in each the best first."""
    sign = -1 if workload.better == "higher" else 1
    worst = float("inf")
    return sorted(objects, key=lambda row: (row["cores"], sign * row["value"] if row["value"] is not None else worst))


def print_table(workload, objects):
    header, rows = table(workload, objects)
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]
    print(f"\n{workload.name}: {workload.title}")
    for row in [header] + rows:
        print("  " + "  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def verdicts(workload, objects, ahead):
    """Whether holdfast reached what it must, and who was better, a line each."""
    lines = []
    for row in objects:
        for target in workload.targets:
            if not target.concerns(row["contestant"], row["cores"]):
                continue
            value = row.get(target.of)
            found = "not measured" if value is None else f"{value:.2f}"
            word = "yes" if target.reached(value) else "NO"
            who = "" if target.who == "holdfast" else f"{target.who}: "
            lines.append(f"{who}{target.text()}, cores {row['cores']}: {found}: {word}")
    return lines + [f"ahead of holdfast, cores {each['cores']}: {each['contestant']}" for each in ahead]


def markdown(workload, objects, skipped, judged):
    header, rows = table(workload, objects)
    lines = [f"### {workload.title}", "", "| " + " | ".join(header) + " |",
             "| " + " | ".join(["---", "---"] + ["---:"] * (len(header) - 2)) + " |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += [""] + [f"- {each}" for each in judged] + [f"- without {name}: {why}" for name, why in skipped]
    return "\n".join(lines).rstrip() + "\n"


BAR, GAP, LABEL, WIDTH = 16, 12, 210, 760
COLOURS = {"as they are": "#7a93b8", "kept awake": "#2f5d9b"}
HIGHLIGHT = {"as they are": "#e3a35c", "kept awake": "#c8741a"}


def chart(workload, objects):
    """Bars: one pair for each contestant, the best first, holdfast in a colour of its own."""
    names = []
    for row in ordered(workload, objects):
        if row["contestant"] not in names:
            names.append(row["contestant"])
    longest = max((row["value"] or 0) for row in objects) or 1
    states = [state for state in COLOURS if any(row["cores"] == state for row in objects)]
    step = BAR * len(states) + GAP
    height = 64 + step * len(names) + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           f'<text x="16" y="24" font-size="15" font-weight="bold" fill="#222">{escape(workload.title)}</text>',
           f'<text x="16" y="44" fill="#555">{escape(workload.unit)}; {workload.better} is better</text>']
    room = WIDTH - LABEL - 110
    for place, name in enumerate(names):
        top = 64 + place * step
        weight = ' font-weight="bold"' if name.startswith("holdfast") else ""
        out.append(f'<text x="{LABEL - 10}" y="{top + step / 2}" text-anchor="end" fill="#222"{weight}>{escape(name)}</text>')
        for line, state in enumerate(states):
            row = next((row for row in objects if row["contestant"] == name and row["cores"] == state), None)
            if row is None or row["value"] is None:
                continue
            length = max(1.0, room * row["value"] / longest)
            colour = (HIGHLIGHT if name.startswith("holdfast") else COLOURS)[state]
            y = top + line * BAR
            out.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR - 2}" fill="{colour}"/>')
            out.append(f'<text x="{LABEL + length + 6:.1f}" y="{y + BAR - 5}" fill="#333">{number(row["value"])}</text>')
    if len(states) > 1:
        out.append(f'<text x="{LABEL}" y="{height - 10}" fill="#777">upper bar: cores as they are; lower bar: kept awake</text>')
    return "\n".join(out + ["</svg>", ""])


def machine():
    """Where and on what this was measured, for people who compare."""
    model = "unknown processor"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}, load average {os.getloadavg()[0]:.1f}"


def said_by(*command):
    """The first line of what a program says of its version."""
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        return done.stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def circumstances(peers_too):
    """What somebody has to know who compares figures of two runs: (what, which)."""
    root = os.path.dirname(os.path.abspath(__file__))
    known = [("machine", machine()), ("commit", said_by("git", "-C", root, "describe", "--always", "--dirty")),
             ("redis-server", said_by("redis-server", "--version"))]
    if peers_too:
        debian = ("python3-redis", "python3-hiredis", "etcd-server", "zookeeper", "libcurator-recipes-java")
        known += [(name, said_by("dpkg-query", "-W", "-f", "${Version}", name)) for name in debian]
        node = os.path.join(root, "..", "..", "build", "peers", "node")
        for name in ("ioredis", "redlock", "redis-semaphore"):
            known.append((name, version_of(os.path.join(node, "node_modules", name, "package.json"))))
        sources = os.path.join(root, "..", "peers")
        for name in ("go-redsync/redsync/v4", "redis/rueidis"):
            known.append((name, found_in(os.path.join(sources, "go", "go.mod"), rf"{name} v(\S+)")))
        known.append(("redisson", found_in(os.path.join(sources, "java", "pom.xml"), r"redisson</artifactId>\s*<version>([^<]+)")))
        known.append(("go", said_by("go", "version")))
        known.append(("node", said_by("node", "--version")))
        known.append(("java", said_by("java", "--version")))
    return known


def found_in(path, pattern):
    with open(path) as file:
        found = re.search(pattern, file.read())
    return found[1] if found else "unknown"


def version_of(package):
    try:
        with open(package) as file:
            return json.load(file)["version"]
    except (OSError, ValueError, KeyError):
        return "unknown"


def write_circumstances(directory, known):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "machine.md"), "w") as file:
        file.writelines(["| | |\n", "| --- | --- |\n"] + [f"| {what} | {which} |\n" for what, which in known])


def write_results(directory, workload, objects, skipped, judged):
    os.makedirs(directory, exist_ok=True)
    base = os.path.join(directory, workload.name)
    with open(base + ".json", "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(each) for each in objects) + "\n]\n")
    with open(base + ".md", "w") as file:
        file.write(markdown(workload, objects, skipped, judged))
    with open(base + ".svg", "w") as file:
        file.write(chart(workload, objects))
