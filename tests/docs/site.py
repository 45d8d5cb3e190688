#!/usr/bin/python3
"""Builds the site, and checks that lists, tables and headings of the pages are such there, and that the menu has all pages.

    site.py MKDOCS FOLDER
"""
import os
import re
import subprocess
import sys

TREE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


def counted(page):
    """Of a page as it is written: items, rows of tables without the line below the head, headings."""
    with open(os.path.join(TREE, "docs", page), encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4,}.*", "", text, flags=re.MULTILINE)
    return [len(re.findall(form, text, re.MULTILINE)) for form in (r"^(?:-|\d+\.) ", r"^\|(?! ---)", r"^#+ ")]


def shown(page, folder):
    with open(os.path.join(folder, page[:-len(".md")] + ".html"), encoding="utf-8") as file:
        article = re.search(r"<article.*?</article>", file.read(), re.DOTALL)[0]
    return [len(re.findall(form, article)) for form in ("<li", "<tr", r"<h[1-6]")]


def main(mkdocs, folder):
    subprocess.run([mkdocs, "build", "--quiet", "--site-dir", folder], cwd=TREE, check=True)
    pages = [os.path.relpath(os.path.join(place, name), os.path.join(TREE, "docs"))
             for place, _, names in os.walk(os.path.join(TREE, "docs")) for name in names if name.endswith(".md")]
    pages = [page for page in pages if not page.startswith("performance/")]
    wrong = [f"{page}: items, rows and headings are {counted(page)}, on the site {shown(page, folder)}"
             for page in pages if counted(page) != shown(page, folder)]
    with open(os.path.join(TREE, "mkdocs.yml"), encoding="utf-8") as file:
        menu = re.findall(r": (\S+\.md)$", file.read(), re.MULTILINE)
    wrong += [f"{page} is not in the menu of mkdocs.yml" for page in pages if page not in menu]
    print("\n".join(wrong) or f"{len(pages)} pages are as they were written")
    return 1 if wrong or len(pages) < 10 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
