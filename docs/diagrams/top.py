#!/usr/bin/python3
"""Makes top.svg, the picture of `holdfast top`, from what the command really writes to a terminal.

    top.py [COMMAND]   COMMAND is build/release/bin/holdfast unless told otherwise

Starts a redis-server of its own, lets a few `holdfast run` hold locks and wait for them, runs `holdfast top` in a
terminal of COLUMNS x ROWS, and draws the last page that it wrote. Times, pids and tokens are those of that run, so the
picture differs from run to run, and `draw.py --check` leaves it alone.
"""

import fcntl
import getpass
import html
import os
import pty
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
from draw import DARK, HERE, LIGHT, ROOT

COLUMNS, ROWS = 122, 11
CELL, LINE, PAD, BAR = 8, 19, 14, 30  # pixels: width of a character, height of a line, margin, height of the title bar
# Name of the lock, options of `holdfast run`, and how many such commands.
RUNS = [("catalog", ["--shared"], 3), ("catalog", ["--exclusive"], 1), ("stock:1001", [], 4), ("deploy", [], 2),
        ("nightly-report", [], 1), ("import:customers", ["--lease", "10s"], 1)]
STYLES = {"0": "", "1": "b", "2": "dim", "31": "red", "33": "yellow"}  # the escape sequences that the command uses


def page_of(command, url, seconds):
    """The bytes of the last page that `holdfast top` drew."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(command, [command, "top", "--url", url])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    written, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            written += os.read(terminal, 65536)
    os.write(terminal, b"q")
    os.waitpid(pid, 0)
    page = written.decode().split("\x1b[H")[-1]
    # The picture shows no machine of ours: another name of the same width.
    mine = f"{getpass.getuser()}@{socket.gethostname()}"
    return page.replace(mine, "ann@web-server-1.example"[:len(mine)].ljust(len(mine)))


def runs_of(line):
    """(column, text, style) of each piece of a line that has one style."""
    found, column, style = [], 0, ""
    for code, letter, text in re.findall(r"\x1b\[([\d;]*)([A-Za-z])|([^\x1b]+)", line):
        if letter == "m":
            style = STYLES[code]
        for word in re.finditer(r"\S+(?: \S+)*", text):
            found.append((column + word.start(), word[0], style))
        column += len(text)
    return found


def svg_of(page):
    def rules(c, red, yellow):
        return (f".bg{{fill:{c['bg']};stroke:{c['edge']}}}.bar{{fill:{c['box']};stroke:{c['edge']}}}"
                f"text{{fill:{c['ink']}}}.dim{{fill:{c['dim']}}}.red{{fill:{red}}}.yellow{{fill:{yellow}}}")
    width, height = COLUMNS * CELL + 2 * PAD, ROWS * LINE + BAR + 2 * PAD
    items = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" role="img">',
             "<title>holdfast top: locks, holders and waiters of a server</title>",
             "<style>text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}.b{font-weight:bold}" +
             rules(LIGHT, "#cf222e", "#9a6700") + "@media(prefers-color-scheme:dark){" +
             rules(DARK, "#ff7b72", "#d29922") + "}</style>",
             f'<rect class="bg" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>',
             f'<path class="bar" d="M.5 {BAR}V8.5a8 8 0 0 1 8-8H{width - 8.5}a8 8 0 0 1 8 8V{BAR}z"/>',
             f'<text class="dim" x="{PAD}" y="20">$ holdfast top</text>']
    for row, line in enumerate(page.split("\n")):
        for column, text, style in runs_of(line.rstrip("\r")):
            # The length is set, so that columns stand under each other in any font.
            items.append(f'<text x="{PAD + column * CELL}" y="{BAR + PAD + 12 + row * LINE}" '
                         f'textLength="{len(text) * CELL}"' +
                         (f' class="{style}"' if style else "") + f">{html.escape(text, quote=False)}</text>")
            if column + len(text) > COLUMNS or row >= ROWS:
                raise ValueError(f"outside of the terminal: {text}")
    return "\n".join(items + ["</svg>", ""])


def wait_for(is_true):
    until = time.monotonic() + 10
    while not is_true():
        if time.monotonic() > until:
            raise TimeoutError("the server or a command did not start")
        time.sleep(0.02)


def main(arguments):
    command = os.path.abspath(arguments[0] if arguments else os.path.join(ROOT, "build/release/bin/holdfast"))
    home, started, url = tempfile.mkdtemp(prefix="hf-top."), [], "redis://127.0.0.1:6379"
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 6379))  # fails if somebody else's server is there
    try:
        started.append(subprocess.Popen(["redis-server", "--port", "6379", "--bind", "127.0.0.1", "--save", "",
                                         "--dir", home], stdout=subprocess.DEVNULL))
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", 6379)) == 0)
        for name, options, count in RUNS:
            for _ in range(count):
                started.append(subprocess.Popen([command, "run", "--quiet", "--url", url, *options, name, "--",
                                                 "sleep", "60"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                time.sleep(0.4)  # one after the other, so that the times differ
        page = page_of(command, url, 3.5)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
        shutil.rmtree(home)
    with open(os.path.join(HERE, "top.svg"), "w", encoding="utf-8") as file:
        file.write(svg_of(page))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
