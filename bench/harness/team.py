"""A contestant at work: its processes, and what they and the server did in one slice of time.

All slices have the same form, whoever ran them; `Slice` turns the diaries into figures.
"""

import json
import os
import select
import subprocess
import tempfile

from . import servers


# Commands that no contestant sends while it is measured.
THE_HARNESS_OWN = ("info", "config", "client", "select", "flushdb", "dbsize", "slowlog")

SCRIPTS = ("evalsha", "eval")


class Silent(RuntimeError):
    """A contestant that ended, or did not answer in time."""


class Worker:
    """One process that talks as contestants/contestant.hpp says."""

    def __init__(self, command, environment):
        self.command = command
        self.complaints = tempfile.TemporaryFile()  # a pipe that nobody reads would stop one who has much to say
        self.process = subprocess.Popen(
            servers.WITH_THE_PARENT + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints,
            env={**os.environ, **environment}, text=True, bufsize=1)

    def line(self, patience):
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        text = self.process.stdout.readline() if ready else ""
        if not text:
            self.process.kill()
            self.process.wait()
            self.complaints.seek(0)
            said = self.complaints.read().decode(errors="replace").strip()[-600:]
            why = said or ("ended" if ready else f"no answer within {patience:.0f} s")
            raise Silent(f"{os.path.basename(self.command[0])}: {why}")
        return text

    def wait_until_ready(self):
        while self.line(120).strip() != "ready":
            pass  # whatever a runtime has to say before

    def go(self, seconds):
        self.process.stdin.write(f"go {seconds}\n")
        self.process.stdin.flush()

    def stop(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Slice:
    """What all processes of a team reported, together, and what the server says it cost."""

    def __init__(self, reports, commands=None, server_cpu_us=0.0, top_level=(), script_times_us=()):
        self.reports = reports
        self.cycles = sum(each["cycles"] for each in reports)
        self.seconds = max(each["elapsed_us"] for each in reports) / 1e6
        self.client_cpu_us = sum(each["cpu_us"] for each in reports)
        self.server_cpu_us = server_cpu_us
        self.commands = commands or {}
        self.top_level = top_level
        self.script_times_us = script_times_us

    def per_cycle(self, total):
        """Late cycles cost as much as others, though they count for no figure."""
        paid_for = self.cycles + sum(each.get("late_cycles", 0) for each in self.reports)
        return total / paid_for if paid_for else float("nan")

    def per_second(self):
        return self.cycles / self.seconds

    def p50(self):
        return self.reports[0].get("p50_us", float("nan"))  # nobody may have got inside in time

    def visits(self):
        """(entered, left, who) of all callers of all processes, in order."""
        return sorted((entered, left, (number, who)) for number, report in enumerate(self.reports)
                      for entered, left, who in zip(report["entered_us"], report["left_us"], report["visitor"]))

    def gaps(self):
        """From release called to the next holder inside, where that is somebody else."""
        visits = self.visits()
        for before, after in zip(visits, visits[1:]):
            if after[0] < before[1]:
                raise Silent(f"two holders at once: {before[2]} released {before[1] - after[0]:.0f} us after {after[2]} came in")
        return [after[0] - before[1] for before, after in zip(visits, visits[1:]) if before[2] != after[2]]

    def fairness(self):
        shares = [share for report in self.reports for share in report["shares"]]
        return min(shares) / max(shares) if max(shares) else 0.0

    def costs(self):
        """What every workload tells beside its figure."""
        sent = sum(calls for name, (calls, _) in self.commands.items() if name in self.top_level)
        ran = sum(calls for calls, _ in self.commands.values())
        costs = {"client_cpu_us": self.per_cycle(self.client_cpu_us),
                 "server_cpu_us": self.per_cycle(self.server_cpu_us)}
        if self.commands:
            costs["commands_per_cycle"] = self.per_cycle(sent)
            costs["server_calls_per_cycle"] = self.per_cycle(ran)
            costs.update(self.script_costs())
        return costs

    def script_costs(self):
        """The server's time in scripts, by its own count: in what they call, and in Lua."""
        scripts = sum(time_us for name, (_, time_us) in self.commands.items() if name in SCRIPTS)
        if not scripts:
            return {}
        called = sum(time_us for name, (_, time_us) in self.commands.items() if name not in self.top_level)
        return {"called_us": self.per_cycle(called), "lua_us": self.per_cycle(scripts - called)}


class Team:
    """The processes of one contestant in one workload, alive through all its rounds."""

    def __init__(self, name, commands, server, environment=None, top_level=SCRIPTS):
        self.name = name
        self.server = server
        self.top_level = set(top_level)
        self.workers = []
        try:
            for command in commands:
                self.workers.append(Worker(command, environment or {}))
            for worker in self.workers:
                worker.wait_until_ready()
        except Exception:
            self.stop()
            raise

    def run(self, seconds):
        self.server.forget_times()
        before, cpu_before = self.server.commands(), self.server.processor_time_us()
        for worker in self.workers:
            worker.go(seconds)
        reports = [json.loads(worker.line(seconds * 3 + 60)) for worker in self.workers]
        cpu = self.server.processor_time_us() - cpu_before
        return Slice(reports, difference(before, self.server.commands()), cpu, self.top_level,
                     self.server.script_times_us())

    def stop(self):
        for worker in self.workers:
            worker.stop()


def difference(before, after):
    """Calls and their time in between, without what the harness itself asked."""
    grown = {}
    for name, (calls, time_us) in after.items():
        calls_before, time_before = before.get(name, (0, 0.0))
        if calls > calls_before and not name.startswith(THE_HARNESS_OWN):
            grown[name] = (calls - calls_before, time_us - time_before)
    return grown
