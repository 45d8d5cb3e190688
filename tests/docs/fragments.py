#!/usr/bin/python3
"""Compiles the C++ in the guides: they show fragments, so each becomes a function with what it uses declared before it.

    fragments.py COMPILER [FLAG...]
"""
import os
import re
import subprocess
import sys

TREE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGES = ["docs/migrating.md", "docs/observing.md"] + [f"docs/guides/{name}.md" for name in ("cron", "migrations", "leader", "stock")]

# What the reader has already, and the fragments only name.
BEFORE = """
#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

using namespace std::chrono_literals;
namespace asio = boost::asio;

struct database {
    struct row { int left; std::uint64_t seen; };
    row read(const char* item, std::uint64_t token);
    bool write(const char* item, int amount, std::uint64_t token);
};
struct step { void run(database&) const; };
std::vector<step> missing_steps(database&);
void work(std::uint64_t token);
void do_one_round(std::uint64_t token);
void wake_up();
void send_work_to(const std::string& leader);
"""
GIVEN = "[[maybe_unused]] holdfast::client& redis, database& database, std::stop_token stop, bool& stopping"


def fragments(text):
    return re.findall(r"^```cpp\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def program(pages):
    parts = [BEFORE]
    for page in pages:
        with open(os.path.join(TREE, page), encoding="utf-8") as file:
            for number, fragment in enumerate(fragments(file.read())):
                where = re.sub(r"\W", "_", page) + f"_{number}"
                if re.match(r"\w[\w:<> ]* \w+\(.*\) \{\n", fragment):  # a function of its own
                    parts.append(f"namespace {where} {{\n{fragment}}}\n")
                    continue
                given = GIVEN if "holdfast::client redis" not in fragment else GIVEN.split(", ", 1)[1]
                parts.append(f"void {where}({given}) {{\n(void)database; (void)stop; (void)stopping;\n{fragment}}}\n")
    return "\n".join(parts)


def compiles(text, command):
    return subprocess.run([*command, "-std=c++20", "-fsyntax-only", "-Wall", "-I", os.path.join(TREE, "include"), "-x", "c++", "-"],
                          input=text, text=True, check=False).returncode == 0


if __name__ == "__main__":
    whole = program(PAGES)
    assert whole.count("holdfast::") > 10, "no fragments were found"
    assert len(sys.argv) > 1, __doc__
    sys.exit(0 if compiles(whole, sys.argv[1:]) else 1)
