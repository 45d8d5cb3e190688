#!/usr/bin/python3
"""The memory of the server that docs/sizing.md names for locks, waiters and readers is what they take, within a quarter."""
import os
import re
import tempfile

from rolling_test import HERE, KEEP, INTERVAL, LEASE, RETENTION, Scripts, Server, scripts_of_the_tree

MANY = 2000


def hold_id(number):
    return f"hf_{number:016x}.1.{'A' * 22}"


def keys(name, kind):
    lock = f"hf:{{{name}}}"
    side = ("queue", "waiters", "fence") + (("leases", "grants") if kind == "rw" else ())
    return [lock] + [f"{lock}:{part}" for part in side]


class Bench:
    def __init__(self, server):
        self.link, self.scripts = server.link, Scripts(server.link, scripts_of_the_tree())
        self.mutex("warm", 1)
        self.read("warmer", 1)

    def used(self):
        return int(self.link.info("memory")["used_memory"])

    def each(self, step):
        """What one of many steps adds."""
        before = self.used()
        for number in range(MANY):
            step(number)
        return (self.used() - before) / MANY

    def mutex(self, name, number, channel=""):
        return self.scripts.run("mutex/acquire", keys(name, "mutex"),
                                [hold_id(number), LEASE, "0", RETENTION, channel, "0", INTERVAL, KEEP, "0", "0"])

    def read(self, name, number):
        return self.scripts.run("rw/acquire", keys(name, "rw"), [hold_id(number), RETENTION, "arrival", "r", LEASE, "0", "",
                                                                 "0", INTERVAL, KEEP, "0", "0", "0"])


def measure():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            bench = Bench(server)
            return {
                "a held mutex": bench.each(lambda number: bench.mutex(f"stock:{number:05}", number)),
                "a waiter": bench.each(lambda number: bench.mutex("stock:00000", MANY + number, f"hf:wake:{number:016x}")),
                "a read-write lock with one reader": bench.each(lambda number: bench.read(f"price:{number:05}", number)),
                "each further reader": bench.each(lambda number: bench.read("price:00000", MANY + number)),
            }
        finally:
            server.stop()


def main():
    with open(os.path.join(HERE, "..", "..", "docs", "sizing.md"), encoding="utf-8") as file:
        page = file.read()
    wrong = []
    for what, bytes_each in measure().items():
        said = re.search(rf"^\| {what}\b[^|]*\| ([\d,]+) \|", page, re.MULTILINE)
        said = int(said[1].replace(",", "")) if said else 0
        print(f"{what}: {bytes_each:.0f} bytes, and the page says {said}")
        if not 0.75 <= bytes_each / (said or 1) <= 1.25:
            wrong.append(what)
    if wrong:
        raise SystemExit(f"docs/sizing.md is wrong about: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
