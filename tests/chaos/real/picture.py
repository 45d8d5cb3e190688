#!/usr/bin/python3 -B
"""Draws a part of a history:  picture.py DIRECTORY [FROM [TO [LOCK...]]] > FILE.svg

FROM and TO are seconds since the beginning; LOCKs are stock and page if none are named. There is a row for each thread
and lock, and one for each fault. Without a time it is the first overlap, or else the 20 s with most faults.
"""

import html
import sys

import checker

WIDTH, LABELS, ROW, TOP = 1000, 170, 13, 60
COLOURS = {"x": "#1f4e9c", "r": "#4c9f70", "p": "#c77b1a"}
LEGEND = [("holds exclusively", COLOURS["x"]), ("reads", COLOURS["r"]), ("waits", "#c8ccd4"), ("fault", "#e4a3a3"),
          ("overlap", "#d00000")]


def chosen_time(history, start, seconds=20):
    """From when on to draw."""
    overlaps = [time for time, _ in checker.exclusion(history)]
    if overlaps:
        return min(overlaps) - seconds * checker.S // 2
    begins = sorted(fault[0] for fault in history.faults.values())
    return max(begins, default=start, key=lambda t: sum(t <= other < t + seconds * checker.S for other in begins))


def draw(history, begin_s=None, end_s=None, locks=("stock", "page")):
    start = history.marks.get("start", 0)
    begin = start + int(begin_s * checker.S) if begin_s is not None else chosen_time(history, start) - checker.S // 2
    end = start + int(end_s * checker.S) if end_s is not None else begin + 20 * checker.S

    def shown(since, until):
        return since < end and until > begin

    def x(time):
        return LABELS + (min(max(time, begin), end) - begin) * (WIDTH - LABELS - 10) / (end - begin)

    parts, y = [], TOP

    def bar(since, until, row, height, colour, title, more=""):
        width = max(x(until) - x(since), 0.8)
        parts.append(f'<rect x="{x(since):.1f}" y="{row:.1f}" width="{width:.1f}" height="{height}" fill="{colour}"{more}>'
                     f"<title>{html.escape(title)}</title></rect>")

    def label(text, row):
        parts.append(f'<text x="{LABELS - 8}" y="{row + ROW - 3}" text-anchor="end">{html.escape(text)}</text>')

    # Faults: a row each, and a shade over all rows below.
    faults = sorted((f for f in history.faults.values() if shown(f[0], f[1] or end)), key=lambda f: f[0])
    shades = []
    for since, until, kind, target in faults:
        bar(since, until or end, y + 1, ROW - 2, "#e4a3a3", f"{kind} {target}")
        shades.append((since, until or end))
        # The words stand beside the bar, where there is room.
        right = x(since) < WIDTH * 0.6
        at = x(until or end) + 4 if right else x(since) - 4
        words = f"{kind}: {target}" if len(target) < 24 else kind
        parts.append(f'<text x="{at:.1f}" y="{y + ROW - 3}"{"" if right else " text-anchor=" + chr(34) + "end" + chr(34)}'
                     f' class="fault">{html.escape(words)}</text>')
        y += ROW
    first_row = y = y + 8

    for lock, beliefs in sorted(history.of_locks().items()):
        if lock not in locks:
            continue
        overlaps = [time for time, text in checker.exclusion(history) if text.startswith(lock + ":") and shown(time, time)]
        owners = sorted({b.owner for b in beliefs if shown(b.asked, max(b.start, b.end))},
                        key=lambda owner: (owner[0].split("."), owner[1]))
        lock_top = y
        for owner in owners:
            label(f"{lock} {owner[0]} #{owner[1]}", y)
            for b in (b for b in beliefs if b.owner == owner and shown(b.asked, max(b.start, b.end))):
                bar(b.asked, b.start, y + 5, 3, "#c8ccd4", f"waits {(b.start - b.asked) / checker.S:.3f} s")
                if b.end > b.start:
                    bar(b.start, b.end, y + 2, ROW - 4, COLOURS[b.mode[0]], str(b))
            y += ROW
        for time in overlaps:
            bar(time, time, lock_top, y - lock_top, "#d00000", "overlap")
        y += 6
    height = y + 24

    shade = "".join(f'<rect x="{x(since):.1f}" y="{first_row}" width="{max(x(until) - x(since), 0.8):.1f}" '
                    f'height="{y - first_row}" fill="#e4a3a3" opacity="0.22"/>' for since, until in shades)
    ticks = ""
    for second in range(-(-(begin - start) // checker.S), (end - start) // checker.S + 1):
        at = x(start + second * checker.S)
        ticks += f'<line x1="{at:.1f}" y1="{first_row}" x2="{at:.1f}" y2="{y}" stroke="#dde1e8" stroke-width="0.5"/>'
        if second % 2 == 0:
            ticks += f'<text x="{at:.1f}" y="{y + 14}" text-anchor="middle">{second} s</text>'
    legend, at = "", LABELS
    for text, colour in LEGEND:
        legend += f'<rect x="{at}" y="34" width="14" height="9" fill="{colour}"/><text x="{at + 18}" y="42">{text}</text>'
        at += 40 + 7 * len(text)
    settings = history.settings
    title = (f"{settings.get('topology')}, {settings.get('servers')} server(s), seed {settings.get('seed')}: "
             f"who believes, and what is broken meanwhile")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'font-family="DejaVu Sans, Arial, sans-serif" font-size="9.5" fill="#222">\n<style>.fault{{fill:#8a2f2f}}'
            f'</style>\n<rect width="100%" height="100%" fill="#fff"/>\n<text x="{LABELS}" y="20" font-size="13">'
            f"{html.escape(title)}</text>\n{legend}\n{shade}\n{ticks}\n" + "\n".join(parts) + "\n</svg>\n")


if __name__ == "__main__":
    times = [float(word) for word in sys.argv[2:4]]
    named = sys.argv[4:] or ("stock", "page")
    print(draw(checker.History(sys.argv[1]), *times, **({"locks": named} if named else {})), end="")
