"""For mkdocs: the pages are written as GitHub reads them, where a list may follow its paragraph without an empty line."""
import re

ITEM = re.compile(r"\s*([-*]|\d+\.) ")


def with_lists_apart(text):
    lines, inside_code = [], False
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        if line.lstrip().startswith("```"):
            inside_code = not inside_code
        elif not inside_code and before.strip() and not before.startswith((" ", "#", "|")):
            if (ITEM.match(line) and not ITEM.match(before)) or (line.startswith("|") and not before.startswith("|")):
                lines.append("")
        lines.append(line)
    return "\n".join(lines)


def on_page_markdown(markdown, **_):
    return with_lists_apart(markdown)
