#!/usr/bin/python3
"""Checks what the pages of the documentation say about the rest of the tree.

    check.py design            docs/design-documents.md: each of R01 to R46, and every call, script, test and file it names exists
    check.py troubleshooting   docs/troubleshooting.md: every code of src/base/errc_table.cpp has its row
    check.py languages         each Chinese page, and the README, has the sections, tables, lists and code of the English one
    check.py links             every relative link of every page, with its anchor
    check.py --self-test       that each check fails where it should
"""

import os
import re
import sys
import unicodedata

TREE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
REQUIREMENTS = [f"R{number:02}" for low, high in ((1, 14), (20, 34), (40, 46)) for number in range(low, high + 1)]


def read(path):
    with open(os.path.join(TREE, path), encoding="utf-8") as file:
        return file.read()


def files_below(*folders):
    for folder in folders:
        for place, _, names in sorted(os.walk(os.path.join(TREE, folder))):
            for name in sorted(names):
                yield os.path.relpath(os.path.join(place, name), TREE)


def rows_of(text):
    """The cells of every row of every table."""
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("| ---"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


# What a test program calls its tests, and in which file: {"Suite.Name": path}
def tests_of_the_tree():
    found = {}
    for path in files_below("tests"):
        if path.endswith((".cpp", ".hpp")):
            found.update((f"{suite}.{name}", path) for suite, name in
                         re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", read(path), re.MULTILINE))
        elif path.endswith(".bats"):
            found.update((name, path) for name in re.findall(r'^@test "([\w.]+)"', read(path), re.MULTILINE))
    return found


def cited_in(text):
    """The requirements that a test file names: R07, or R20-R33, or R40 to R46."""
    cited = set(re.findall(r"\bR\d\d\b", text))
    for low, high in re.findall(r"\bR(\d\d)(?:-| to )R(\d\d)\b", text):
        cited.update(f"R{number:02}" for number in range(int(low), int(high) + 1))
    return cited


def is_declared(call, headers):
    """Whether the public headers have the name; of `lease::token` the part behind the colons."""
    return re.search(rf"\b{re.escape(call.split('::')[-1])}\b", headers) is not None


def check_design(text, tests, headers):
    complaints = []
    listed = []
    for row in rows_of(text):
        names = re.findall(r"`(\w+\.\w+)`", " ".join(row))
        complaints += [f"no test {name}" for name in names if name not in tests and not name.endswith((".hpp", ".md"))]
        paths = re.findall(r"`((?:src|tests|docs)/[\w./-]+)`", " ".join(row))
        complaints += [f"no file {path}" for path in paths if not os.path.exists(os.path.join(TREE, path))]
        if not re.fullmatch(r"R\d\d", row[0]):
            continue
        listed.append(row[0])
        calls, scripts, shown_by = row[3:6]
        complaints += [f"{row[0]}: no call {call} in the public headers"
                       for call in re.findall(r"`([^`]+)`", calls) if not is_declared(call, headers)]
        complaints += [f"{row[0]}: no script {script}" for script in re.findall(r"`([^`]+)`", scripts)
                       if not os.path.exists(os.path.join(TREE, "src/wire", script + ".lua"))]
        shown = [tests[name] for name in re.findall(r"`(\w+\.\w+)`", shown_by) if name in tests]
        if not shown:
            complaints.append(f"{row[0]}: no test")
        elif not any(row[0] in cited_in(read(path)) for path in shown):
            complaints.append(f"{row[0]}: none of its test files names the requirement")
        if set(re.findall(r"`(tests/[^`]+)`", shown_by)) != set(shown):
            complaints.append(f"{row[0]}: tests are in {sorted(set(shown))}")
    if listed != REQUIREMENTS:
        complaints.append(f"missing, repeated or out of order: {sorted(set(REQUIREMENTS) ^ set(listed)) or listed}")
    return complaints


def design():
    tests = tests_of_the_tree()
    headers = "\n".join(read(path) for path in files_below("include/holdfast"))
    pages = ("docs/design-documents.md", "docs/zh/design-documents.md")
    complaints = [f"{page}: {text}" for page in pages for text in check_design(read(page), tests, headers)]

    def named(page):  # the same rows in both languages: same requirements, calls, scripts and tests
        return [sorted(re.findall(r"`([^`]+)`", " ".join(row[3:]))) for row in rows_of(read(page)) if len(row) > 3]

    if named(pages[0]) != named(pages[1]):
        complaints.append("the two languages do not name the same calls, scripts and tests")
    return complaints


def codes():
    return re.findall(r"\{errc::(\w+),", read("src/base/errc_table.cpp"))


def check_troubleshooting(text, wanted):
    listed = [row[0].strip("`") for row in rows_of(text) if re.fullmatch(r"`\w+`", row[0])]
    return ([f"no row for {code}" for code in wanted if code not in listed] +
            [f"no such code: {code}" for code in listed if code not in wanted] +
            [f"two rows for {code}" for code in sorted(set(listed)) if listed.count(code) > 1])


def troubleshooting():
    return [f"docs/troubleshooting.md: {text}" for text in
            check_troubleshooting(read("docs/troubleshooting.md"), codes())]


def anchor_of(title):
    """As GitHub makes it, and the site with pymdownx.slugs."""
    title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).strip().lower()
    kept = [c for c in title if c in " -_" or unicodedata.category(c)[0] in "LN"]
    return "".join(kept).replace(" ", "-")


def without_code(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "`", text)


def anchors_of(text):
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return {anchor_of(title) for title in re.findall(r"^#+ (.*)", prose, re.MULTILINE)}


def broken_links(page, text, exists, content):
    complaints = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not exists(path):
            complaints.append(f"{page}: no {target}")
        elif anchor and path.endswith(".md") and anchor not in anchors_of(content(path)):
            complaints.append(f"{page}: no heading for {target}")
    return complaints


def links():
    pages = [path for path in [*os.listdir(TREE), *files_below("docs"), *files_below(".github")] if path.endswith(".md")]
    exists = lambda path: os.path.exists(os.path.join(TREE, path))
    return [text for page in pages for text in broken_links(page, read(page), exists, read)]


def shape(text):
    """Headings, rows with their columns, items and the lines of code, in their order."""
    found, is_code = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            is_code = not is_code
        if is_code:
            found.append(line)
        elif line.startswith("#"):
            found.append(line.split(" ")[0])
        elif line.startswith("|"):
            found.append("|" * line.count("|"))
        elif re.match(r"(- |\d+\. )", line):
            found.append(line.split(" ")[0])
    return found


def languages():
    pages = [("README.md", "README.zh-CN.md")]
    pages += [(f"docs/{page}", f"docs/zh/{page}") for page in ("guarantees.md", "quick-start.md", "design-documents.md")]
    return [f"{one} and {other} differ in sections, tables, lists or code"
            for one, other in pages if shape(read(one)) != shape(read(other))]


def self_test():
    assert shape("```sh\na\n```") != shape("```sh\nb\n```")
    assert shape("# a\n| b | c |\n- d") == shape("# x\ny\n| z | z |\n- z") != shape("# a\n| b |\n- d")
    tests = {"Suite.Name": "tests/docs/check.py"}
    good = "| R07 | b | 001 | `lease::token` | `mutex/acquire` | `Suite.Name` in `tests/docs/check.py` |"
    wrong = lambda old, new: check_design(good.replace(old, new), tests, "token()")
    assert len(check_design(good, tests, "token()")) == 1, "only that the others are missing"
    for old, new in (("lease::token", "lease::tokens"), ("mutex/acquire", "mutex/require"), ("Suite.Name", "Suite.Other"),
                     ("check.py`", "czech.py`")):
        assert len(wrong(old, new)) > 1, new
    assert cited_in("// R20-R22, and R40 to R41: R07") == {"R07", "R20", "R21", "R22", "R40", "R41"}
    assert check_troubleshooting("| `busy` | x |", ["busy"]) == []
    for text, wanted in (("| `busy` | x |", ["busy", "lost"]), ("| `busy` | x |", []),
                         ("| `busy` | x |\n| `busy` | x |", ["busy"])):
        assert len(check_troubleshooting(text, wanted)) == 1, text
    pages = {"docs/a.md": "# One two", "docs/zh/b.md": "# 一、二"}
    broken = lambda text: broken_links("docs/a.md", text, pages.__contains__, pages.get)
    assert broken("[x](a.md#one-two) [y](zh/b.md#一二) [z](https://elsewhere) `[n](o.md)`") == []
    assert len(broken("[x](c.md) [y](a.md#three)")) == 2
    return []


if __name__ == "__main__":
    checks = {"design": design, "troubleshooting": troubleshooting, "languages": languages, "links": links, "--self-test": self_test}
    if len(sys.argv) != 2 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    complaints = checks[sys.argv[1]]()
    print("\n".join(complaints) or "all is there")
    sys.exit(1 if complaints else 0)
