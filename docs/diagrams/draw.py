#!/usr/bin/python3
"""Draws the pictures of the documentation: every NAME.txt in this folder becomes NAME.svg.

    draw.py           writes the SVG files
    draw.py --check   writes nothing; fails if an SVG file is not what its text gives, if a text does not fit its box,
                      or if a text names a script or a folder that does not exist

The first line of a text is the kind of the picture and its title. In all lines `#` begins a comment, `|` in a label
begins a new line, and backticks mark code. A name is one word. top.svg is made by top.py.

sequence TITLE                 lifelines side by side, time goes down
    gap N                      distance of two lifelines in pixels; the room for labels follows from it
    life NAME: label           a lifeline; their order is from left to right
    NAME -> NAME: label        a request; several targets (`A -> B C: ...`) get the same request at the same time
    NAME --> NAME: label       an answer; several sources (`B C --> A: ...`) give the same answer
    NAME ~> NAME: label        a message that nobody asked for (pub/sub, replication, an announcement)
    NAME: label                a note on one lifeline
    NAME NAME: label           a note that spans from one lifeline to another
    begin NAME WHAT            a bar on the lifeline starts; WHAT is a key of BARS below
    end NAME                   the bar ends
    down NAME / up NAME        the process or the server is away in between
    ... label                  time passes

layers TITLE                   boxes above each other; an arrow points at what a layer may include
    layer NAME: label          a layer, the topmost first
    parts NAME NAME ...        folders of the last layer
    side NAME: label           a box beside all layers, which all of them may include
"""

import html
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
MAX_WIDTH = 1000  # a wider picture is scaled down by most viewers, and then its text is too small
FONT, LINE = 13, 17  # size of the text and distance of two lines
NOTE_PAD, TOP = 7, 40
BARS = {"holds": "believes that it holds the lock", "reads": "believes that it reads",
        "writes": "believes that it reads and writes", "vote": "has the vote (the server's lease runs)",
        "mistrusted": "mistrusted: nothing new is acquired there"}

LIGHT = {"bg": "#ffffff", "ink": "#1f2328", "dim": "#59636e", "box": "#eef2f6", "edge": "#8c959f", "note": "#fff8dc",
         "request": "#0550ae", "answer": "#1a7f37", "push": "#8250df", "holds": "#2da44e", "reads": "#54aeff",
         "writes": "#2da44e", "vote": "#8c959f", "mistrusted": "#e16f24"}
DARK = {"bg": "#0d1117", "ink": "#e6edf3", "dim": "#9198a1", "box": "#1c2430", "edge": "#6e7681", "note": "#2b2613",
        "request": "#79c0ff", "answer": "#56d364", "push": "#d2a8ff", "holds": "#3fb950", "reads": "#388bfd",
        "writes": "#3fb950", "vote": "#6e7681", "mistrusted": "#f0883e"}


def style():
    def rules(c):
        stroked = "".join(f".{k}{{stroke:{c[k]}}}.{k}-h{{fill:{c[k]}}}" for k in ("request", "answer", "push"))
        bars = "".join(f".{k}{{fill:{c[k]}}}" for k in BARS)
        return (f".bg{{fill:{c['bg']}}}text{{fill:{c['ink']}}}.dim{{fill:{c['dim']}}}"
                f".box{{fill:{c['box']};stroke:{c['edge']}}}"
                f".note{{fill:{c['note']};stroke:{c['edge']}}}.life{{stroke:{c['edge']}}}{stroked}{bars}")
    return ("<style>text{font:13px system-ui,'Segoe UI',Helvetica,Arial,sans-serif}.b{font-weight:bold}"
            ".c{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px}path,line{fill:none}"
            ".life{stroke-dasharray:3 4}.answer{stroke-dasharray:6 3}"
            ".push{stroke-dasharray:2 3;stroke-width:2}" + rules(LIGHT) +
            "@media(prefers-color-scheme:dark){" + rules(DARK) + "}</style>")


def width_of(label, bold=False):
    """An upper bound for any usual font: the widths are those of DejaVu Sans, which is wider than most."""
    total = 0.0
    for i, piece in enumerate(label.split("`")):
        for c in piece:
            total += (0.58 if i % 2 else 0.41 if c in " !'()[]ijl,.:;/\\-frtIJ" else 1.0 if c in "mMW%@" else
                      0.86 if c in "wHNUDGOQ&#+<=>~^" else 0.66) * FONT
    return total * (1.1 if bold else 1)


class picture:
    """SVG elements, and complaints about texts that do not fit."""

    def __init__(self, name, title):
        self.name, self.title, self.items, self.complaints = name, title, [], []

    def add(self, tag, **attributes):
        text = " ".join(f'{key}="{value}"' for key, value in attributes.items())
        self.items.append(f"<{tag} {text}/>".replace("kind=", "class="))

    def box(self, x, y, width, height, kind, radius=4):
        self.add("rect", x=x, y=y, width=width, height=height, rx=radius, kind=kind)

    def line(self, x1, y1, x2, y2, kind):
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, kind=kind)

    def head(self, x, y, dx, dy, kind):
        """The head of an arrow that points into the direction (dx, dy)."""
        self.add("path", d=f"M{x} {y}l{-8 * dx - 4 * dy} {-8 * dy - 4 * dx}l{8 * dy} {8 * dx}z", kind=kind + "-h")

    def text(self, x, y, label, room, kind="", anchor="middle"):
        if width_of(label, "b" in kind) > room:
            self.complaints.append(f"{self.name}.txt: {width_of(label, 'b' in kind):.0f} > {room:.0f} pixels: {label}")
        pieces = [html.escape(piece, quote=False) for piece in label.split("`")]
        inner = "".join(f'<tspan class="c">{each}</tspan>' if i % 2 else each for i, each in enumerate(pieces))
        self.items.append(f'<text x="{x}" y="{y}"' + (f' class="{kind}"' if kind else "") +
                          (f' text-anchor="{anchor}"' if anchor != "start" else "") + f">{inner}</text>")

    def svg(self, width, height):
        if width > MAX_WIDTH:
            self.complaints.append(f"{self.name}.txt: the picture is {width} pixels wide, more than {MAX_WIDTH}")
        title = html.escape(self.title)
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                          f'height="{height}" role="img">', f"<title>{title}</title>", style(),
                          f'<rect class="bg" width="{width}" height="{height}"/>', *self.items, "</svg>", ""])


class sequence(picture):
    def __init__(self, name, title, lines):
        super().__init__(name, title)
        self.gap, self.labels, self.bars, self.away, self.seen = 160, {}, {}, {}, []
        self.under = []  # lifelines and bars; the other elements cover them
        for line in lines:
            self.step(line)

    def x(self, name):
        return self.gap // 2 + list(self.labels).index(name) * self.gap

    def step(self, line):
        word, _, rest = line.partition(" ")
        if word == "gap":
            self.gap = int(rest)
        elif word == "life":
            name, label = re.match(r"(\w+): *(.+)", rest).groups()
            self.labels[name] = label.split("|")
        else:
            if not hasattr(self, "y"):
                self.heads()
            self.event(word, rest, line)

    def heads(self):
        tall = max(map(len, self.labels.values())) * LINE + 10
        for name, label in self.labels.items():
            self.box(self.x(name) - self.gap // 2 + 8, TOP, self.gap - 16, tall, "box")
            for i, each in enumerate(label):
                self.text(self.x(name), TOP + 18 + i * LINE, each, self.gap - 20, "b" if i == 0 else "dim")
        self.y = TOP + tall
        self.since = dict.fromkeys(self.labels, self.y)

    def event(self, word, rest, line):
        if word == "begin":
            name, what = rest.split()
            self.bars[name] = (what, self.y + 2)
            self.seen.append(what)
        elif word == "end":
            self.end_bar(rest)
        elif word == "down":
            self.end_line(rest)
            self.y += 22
            self.text(self.x(rest), self.y, "✕ down", self.gap, "b")
            self.away[rest] = self.y
        elif word == "up":
            del self.away[rest]
            self.y += 22
            self.text(self.x(rest), self.y, "up again", self.gap, "b")
            self.since[rest] = self.y + 5
        elif word == "...":
            width = self.gap * len(self.labels)
            self.box(0, self.y + 13, width, LINE + 4, "bg", 0)  # interrupts the lifelines
            self.y += LINE + 15
            self.text(16, self.y - 3, "⋮ " + rest, width - 32, "dim", "start")
        else:
            found = re.match(r"([\w ]+?) (-->|->|~>) ([\w ]+): (.+)", line)
            note = re.match(r"(\w+)(?: (\w+))?: (.+)", line)
            if found:
                kind = {"->": "request", "-->": "answer", "~>": "push"}[found[2]]
                self.message(found[1].split(), found[3].split(), kind, [each.strip() for each in found[4].split("|")])
            else:
                self.note(note[1], note[2] or note[1], [each.strip() for each in note[3].split("|")])

    def end_line(self, name):
        self.under.append((self.x(name), self.since[name], self.y + 6))

    def end_bar(self, name):
        what, since = self.bars.pop(name)
        self.under.append((self.x(name), since, self.y + 2, what))

    def message(self, sources, targets, kind, label):
        self.seen.append(kind)
        ends = {name: self.x(name) for name in sources + targets}
        left, right = min(ends.values()), max(ends.values())
        # A label that fits into one gap stands next to the sender, so that it covers no lifeline.
        first = min(sources, key=lambda name: abs(self.x(name) - self.x(targets[0])))
        towards = 1 if self.x(targets[0]) > self.x(first) else -1
        narrow = all(width_of(each) <= self.gap - 16 for each in label)
        middle, room = (self.x(first) + towards * self.gap // 2, self.gap - 16) if narrow else \
            ((left + right) // 2, right - left - 16)
        self.y += 8
        if not narrow:
            widest = int(max(map(width_of, label)))
            self.box(middle - widest // 2, self.y + 2, widest, len(label) * LINE, "bg", 0)
        for each in label:
            self.y += LINE
            self.text(middle, self.y - 2, each, room)
        self.y += 6
        self.line(left + 5, self.y, right - 5, self.y, kind)
        for name in targets:
            towards = 1 if ends[name] > ends[sources[0]] else -1
            self.head(ends[name] - 4 * towards, self.y, towards, 0, kind)
        for name in sources if len(sources) > 1 else []:
            self.add("circle", cx=ends[name], cy=self.y, r=3, kind=kind + "-h")

    def note(self, first, last, label):
        left, right = sorted((self.x(first), self.x(last)))
        left, right = left - self.gap // 2 + 6, right + self.gap // 2 - 6
        self.y += 10
        self.box(left, self.y, right - left, len(label) * LINE + 2 * NOTE_PAD - 2, "note")
        for i, each in enumerate(label):
            self.text((left + right) // 2, self.y + NOTE_PAD + 12 + i * LINE, each, right - left - 10)
        self.y += len(label) * LINE + 2 * NOTE_PAD - 2

    def finish(self):
        self.y += 12
        for name in self.labels:
            if name in self.bars:
                self.end_bar(name)
            if name not in self.away:
                self.end_line(name)
        foreground, self.items = self.items, []
        for x, since, until, *what in sorted(self.under, key=len):
            self.box(x - 5, since, 10, until - since, what[0], 2) if what else self.line(x, since, x, until, "life")
        self.items += foreground
        width = self.gap * len(self.labels)
        self.text(width // 2, 25, self.title, width - 20, "b")
        self.legend(width)
        return self.svg(width, self.y + 12)

    def legend(self, width):
        words = {"request": "request", "answer": "answer", "push": "message nobody asked for", **BARS}
        x, self.y = 16, self.y + 26
        for kind in [key for key in words if key in self.seen]:
            wide = int(width_of(words[kind])) + 52
            if x + wide > width:
                x, self.y = 16, self.y + LINE + 4
            if kind in BARS:
                self.box(x + 8, self.y - 11, 10, 14, kind, 2)
            else:
                self.line(x, self.y - 4, x + 20, self.y - 4, kind)
                self.head(x + 26, self.y - 4, 1, 0, kind)
            self.text(x + 32, self.y, words[kind], wide, "dim", "start")
            x += wide


class layers(picture):
    def __init__(self, name, title, lines):
        super().__init__(name, title)
        self.rows, self.sides = [], []
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "parts":
                self.rows[-1][2] += rest.split()
            else:
                label, text = re.match(r"(\S+): *(.+)", rest).groups()
                boxes = self.rows if word == "layer" else self.sides
                boxes.append([label, [each.strip() for each in text.split("|")], []])

    def finish(self):
        x, wide, side_x, side_wide, y = 16, 620, 690, 230, TOP
        self.text((side_x + side_wide + x) // 2, 25, self.title, 900, "b")
        for i, (label, text, parts) in enumerate(self.rows):
            tall = 32 + len(text) * LINE + (28 if parts else 0)
            self.box(x, y, wide, tall, "box")
            self.text(x + 12, y + 20, label, wide - 24, "b", "start")
            for n, each in enumerate(text):
                self.text(x + 12, y + 38 + n * LINE, each, wide - 24, "", "start")
            at = x + 12
            for part in parts:
                part_wide = int(width_of(part)) + 12
                self.box(at, y + tall - 31, part_wide, 22, "note")
                self.text(at + part_wide // 2, y + tall - 16, part, part_wide - 8)
                at += part_wide + 8
                if not os.path.isdir(os.path.join(ROOT, label, part)):
                    self.complaints.append(f"{self.name}.txt: there is no folder {label}/{part}")
            if at > x + wide:
                self.complaints.append(f"{self.name}.txt: the parts of {label} are wider than its box")
            self.line(x + wide, y + tall // 2, side_x - 6, y + tall // 2, "request")
            self.head(side_x, y + tall // 2, 1, 0, "request")
            y += tall
            if i + 1 < len(self.rows):
                self.line(x + wide // 2, y, x + wide // 2, y + 18, "request")
                self.head(x + wide // 2, y + 24, 0, 1, "request")
                y += 24
        self.box(side_x, TOP, side_wide, y - TOP, "box")
        tall = (y - TOP - 8) // len(self.sides) - 8
        for i, (label, text, _) in enumerate(self.sides):
            top = TOP + 8 + i * (tall + 8)
            self.box(side_x + 8, top, side_wide - 16, tall, "bg")
            self.text(side_x + 18, top + 20, label, side_wide - 36, "b", "start")
            for n, each in enumerate(text):
                self.text(side_x + 18, top + 42 + n * LINE, each, side_wide - 36, "", "start")
        return self.svg(side_x + side_wide + 16, y + 16)


def missing_names(name, text):
    """The scripts and source folders that the text names and the tree does not have."""
    paths = [f"src/wire/{each}.lua" for each in re.findall(r"\b(?:mutex|rw)/\w+", text)]
    paths += re.findall(r"\b(?:src|include)/\w+", text)
    return [f"{name}.txt: there is no {path}" for path in paths if not os.path.exists(os.path.join(ROOT, path))]


def draw(name):
    """The SVG of a text, and what is wrong with it."""
    with open(os.path.join(HERE, name + ".txt"), encoding="utf-8") as file:
        text = file.read()
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    kind, _, title = lines[0].partition(" ")
    drawn = {"sequence": sequence, "layers": layers}[kind](name, title, lines[1:])
    svg = drawn.finish()
    return svg, drawn.complaints + missing_names(name, text)


def main(arguments):
    complaints = []
    names = sorted(name[:-4] for name in os.listdir(HERE) if name.endswith(".txt"))
    for name in names:
        svg, found = draw(name)
        complaints += found
        path = os.path.join(HERE, name + ".svg")
        if arguments != ["--check"]:
            with open(path, "w", encoding="utf-8") as file:
                file.write(svg)
        elif not os.path.exists(path) or open(path, encoding="utf-8").read() != svg:
            complaints.append(f"{name}.svg is not what {name}.txt gives: run docs/diagrams/draw.py")
    print("\n".join(complaints) or f"{len(names)} pictures are as their texts say")
    return 1 if complaints or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
