"""What is told of a verdict of checker.py: a text, and the table in docs/testing.md."""


def text_of(verdict):
    lines = [f"{verdict['holds']} holds, {sum(verdict['faults'].values())} faults in {verdict['minutes']:.1f} minutes: " +
             ", ".join(f"{count} {kind}" for kind, count in verdict["faults"].most_common()),
             f"overlaps: {verdict['overlaps']}, outside the promise {verdict['overlaps_outside']}; "
             f"{verdict['ordered']} waits whose order counts",
             "updates, and lost ones: tokens not checked {}, {}; checked {}, {}".format(*verdict["plain"],
                                                                                       *verdict["checked"])]
    lines += [f"outside the promise: {text}" for text in verdict["excused"][:20]]
    lines += [f"FAILED: {text}" for text in verdict["failures"][:50]]
    return "\n".join(lines + [f"{len(verdict['failures'])} failures" if verdict["failures"] else "no failure"])


def table_of(verdicts):
    rows = ["| topology | minutes | holds | faults | overlaps | outside the promise | lost updates, tokens not checked | "
            "checked |", "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |"]
    for v in verdicts:
        faults = ", ".join(f"{count} {kind}" for kind, count in v["faults"].most_common())
        rows.append(f"| {v['settings'].get('topology')} | {v['minutes']:.1f} | {v['holds']:,} | {faults} | "
                    f"{v['overlaps']} | {v['overlaps_outside']} | {v['plain'][1]} of {v['plain'][0]:,} | "
                    f"{v['checked'][1]} of {v['checked'][0]:,} |")
    return "\n".join(rows)
