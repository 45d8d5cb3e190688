"""Who competes: how each contestant is started for a workload, and which commands of it a client sends itself.

The server's own count of commands includes those that scripts run, so what is sent is told apart by name: `top_level`.
"""

import os
import subprocess

from .floors import RedisBenchmark
from .team import Team


def words(workload, process, **more):
    given = {**workload.words, "process": process, **more}
    return [f"{name}={value}" for name, value in given.items()]


class Field:
    """Makes the teams of one workload on the servers that were started for it."""

    def __init__(self, programs, workload, servers):
        self.programs, self.workload, self.servers = programs, workload, servers
        self.redis = servers[0]
        if workload.times_script:
            self.redis.time_script(self.sha1_of(workload.times_script))

    def sha1_of(self, step):
        """Of the script that acquires or releases a mutex."""
        words = subprocess.run([self.program("bare"), f"print={step}", "token=1"], check=True, capture_output=True, text=True)
        return words.stdout.splitlines()[1]

    def program(self, name):
        return os.path.join(self.programs, f"contestant_{name}")

    def url(self):
        if self.workload.words.get("link") == "unix":
            return f"unix://{self.redis.socket_path}"
        return ",".join(f"redis://127.0.0.1:{server.port}" for server in self.servers)

    def team(self, name, program, processes, top_level=("evalsha", "eval", "subscribe", "unsubscribe", "ping"), **more):
        commands = [[self.program(program), *words(self.workload, i, url=self.url(), **more)] for i in range(processes)]
        return Team(name, commands, self.redis_servers(), self.redis.contestants_environment(), top_level)

    def redis_servers(self):
        return Everywhere(self.servers)

    def holdfast(self):
        program = "many" if self.workload.name == "many" else "holdfast"
        return self.team("holdfast", program, self.workload.processes)

    def variants(self):
        return [self.team(name, "holdfast", **{"processes": self.workload.processes, **other})
                for name, other in self.workload.variants.items()]

    def second_floors(self):
        return [self.team(name, "bare", self.workload.processes, **other)
                for name, other in self.workload.second_floors.items()]

    def floor(self):
        kind = self.workload.floor
        if kind == "redis-benchmark":
            return RedisBenchmark(self.programs, self.redis)
        if kind == "ping-pong":
            return self.team("PUBLISH ping-pong", "ping_pong", 2, ("publish",))
        if kind == "16 callers":
            return self.team("holdfast, 16 callers", "holdfast", 4, callers=4)
        if kind == "bare":
            more = {"kind": "read"} if self.workload.words.get("kind") == "shared" else {}
            if len(self.servers) > 1:
                more["ports"] = ",".join(str(server.port) for server in self.servers)
            return self.team("bare sockets", "bare", self.workload.processes, **more)
        return None


class Everywhere:
    """Several servers, asked as one."""

    def __init__(self, servers):
        self.servers = servers

    def processor_time_us(self):
        return sum(server.processor_time_us() for server in self.servers)

    def forget_times(self):
        self.servers[0].forget_times()

    def script_times_us(self):
        return self.servers[0].script_times_us()

    def commands(self):
        total = {}
        for server in self.servers:
            for name, (calls, time_us) in server.commands().items():
                calls_before, time_before = total.get(name, (0, 0.0))
                total[name] = (calls + calls_before, time_us + time_before)
        return total
