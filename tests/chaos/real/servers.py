"""Real servers, in the four set-ups that clients know: one, a majority, Sentinel and Cluster."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import time

from network import free_port

PATIENCE_S = 60  # only a hang takes as long


class Refused(Exception):
    pass


def wait_until(holds, what):
    until = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > until:
            raise RuntimeError(f"{what}: not within {PATIENCE_S} s")
        time.sleep(0.05)


class Server:
    """A redis-server on a node. It is administrated over a unix socket, which no cut of the network concerns."""

    def __init__(self, name, node, directory, settings=(), clock=None, sentinel=False):
        self.name, self.node, self.sentinel = name, node, sentinel
        self.directory = os.path.join(directory, name)
        self.port = (26379 if sentinel else 6379) if node.enter else free_port()
        self.clock, self.process = clock, None
        os.mkdir(self.directory)
        self.clock_file = os.path.join(self.directory, "clock")
        self.ahead_us = 0
        self.set_clock(0)
        lines = [f"bind {node.address}", "protected-mode no", f"port {self.port}", f"dir {self.directory}", 'save ""',
                 f"unixsocket {self.directory}/socket", "appendonly yes", "appendfsync always"]
        if sentinel:
            lines = lines[:4] + [f"unixsocket {self.directory}/socket"]
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, *settings]) + "\n")
        self.start()

    @property
    def config(self):
        return os.path.join(self.directory, "redis.conf")

    def start(self):
        environment = dict(os.environ)
        if self.clock:
            environment.update(LD_PRELOAD=self.clock, HOLDFAST_CLOCK_AHEAD_FILE=self.clock_file)
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = self.node.start(["redis-server", self.config] + (["--sentinel"] if self.sentinel else []),
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        wait_until(self.answers, f"the start of {self.name}")

    def answers(self):
        try:
            return self.call("PING") == "PONG"
        except (OSError, Refused):
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self, is_paused):
        os.kill(self.process.pid, signal.SIGSTOP if is_paused else signal.SIGCONT)

    def restart(self, with_data):
        if not with_data:
            shutil.rmtree(os.path.join(self.directory, "appendonlydir"), ignore_errors=True)
            for name in os.listdir(self.directory):
                if name.endswith((".rdb", ".aof")):
                    os.remove(os.path.join(self.directory, name))
        self.start()

    def set_clock(self, ahead_us):
        self.ahead_us = ahead_us
        # In place: the server has the file mapped.
        with open(self.clock_file, "r+b" if os.path.exists(self.clock_file) else "wb") as file:
            file.write(struct.pack("=q", ahead_us))

    def call(self, *words, seconds=30):
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(seconds)
            link.connect(os.path.join(self.directory, "socket"))
            encoded = [str(word).encode() for word in words]
            link.sendall(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in encoded))
            with link.makefile("rb") as answer:
                return read_reply(answer)

    def info(self, section, field):
        for line in self.call("INFO", section).splitlines():
            if line.startswith(field + ":"):
                return line.split(":", 1)[1]
        return None


def read_reply(file):
    line = file.readline().decode(errors="replace").rstrip("\r\n")
    if not line:
        raise OSError("the server closed the connection")
    kind, rest = line[0], line[1:]
    if kind == "-":
        raise Refused(rest)
    if kind == ":":
        return int(rest)
    if kind == "$":
        return None if rest == "-1" else file.read(int(rest) + 2)[:-2].decode(errors="replace")
    if kind == "*":
        return None if rest == "-1" else [read_reply(file) for _ in range(int(rest))]
    return rest


class Topology:
    """`servers` keep data, `others` do not. `nodes` are those of all of them."""
    others = ()

    def __init__(self, network, directory, clock):
        self.network, self.directory, self.clock = network, directory, clock
        self.servers = []

    def make(self, name, settings=(), node=None, sentinel=False):
        return Server(name, node or self.network.add(name), self.directory, settings,
                      None if sentinel else self.clock, sentinel)

    @property
    def cuts(self):
        """Whether links can be cut. Sentinels and members of a Cluster name addresses, behind which no proxy stands."""
        return self.network.can_cut_servers or isinstance(self, One)

    @property
    def nodes(self):
        return list({server.node.name: server.node for server in [*self.servers, *self.others]}.values())

    def all_servers(self):
        return [*self.servers, *self.others]

    def settle(self):
        """Waits until all servers work together."""
        for server in self.all_servers():
            wait_until(server.answers, f"an answer of {server.name}")

    def close(self):
        for server in self.all_servers():
            if server.process.poll() is None:
                server.kill()


class One(Topology):
    options = ["order"]

    def __init__(self, *where):
        super().__init__(*where)
        self.servers.append(self.make("server"))

    def urls(self, worker):
        return " ".join(f"redis://{self.network.address_for(worker, server.node, server.port)}?timeout=1s"
                        "&health_interval=1s" for server in self.servers)


class Quorum(One):
    options = ["no-semaphore"]

    def __init__(self, *where, number=3):
        Topology.__init__(self, *where)
        self.servers = [self.make(f"server-{i + 1}") for i in range(number)]


class Sentinel(Topology):
    """Three nodes, each with a server and a sentinel, set up as docs/deployment.md says, with shorter times."""
    options = ["order"]

    def __init__(self, *where):
        super().__init__(*where)
        shared = ["min-replicas-to-write 1", "min-replicas-max-lag 1", "repl-diskless-sync-delay 0",
                  "repl-ping-replica-period 1"]
        first = None
        for i in range(3):
            follows = [f"replicaof {first.node.address} {first.port}"] if first else []
            self.servers.append(self.make(f"server-{i + 1}", shared + follows))
            first = first or self.servers[0]
        settings = [f"sentinel monitor stock {first.node.address} {first.port} 2",
                    "sentinel down-after-milliseconds stock 3000", "sentinel failover-timeout stock 6000"]
        self.others = [self.make(f"sentinel-{i + 1}", settings, server.node, sentinel=True)
                       for i, server in enumerate(self.servers)]
        for sentinel in self.others:
            try:
                sentinel.call("SENTINEL", "DEBUG", "tilt-trigger", 600_000)
            except Refused:
                pass
        self.settle()

    def urls(self, worker):
        return ("redis+sentinel://" + ",".join(f"{s.node.address}:{s.port}" for s in self.others) +
                "/stock?timeout=1s&health_interval=1s")

    def primary(self):
        told = self.others[0].call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "stock")
        return next(s for s in self.servers if [s.node.address, str(s.port)] == told)

    def is_settled(self):
        try:
            for sentinel in self.others:
                facts = dict(zip(*[iter(sentinel.call("SENTINEL", "MASTER", "stock"))] * 2))
                if facts["num-other-sentinels"] != "2" or facts["flags"] != "master":
                    return False
            return self.primary().info("replication", "connected_slaves") == "2"
        except (OSError, Refused, StopIteration):
            return False

    def settle(self):
        super().settle()
        wait_until(self.is_settled, "the sentinels agree")


class Cluster(Topology):
    """Three primaries, a replica for each."""
    options = ["order"]
    NODE_TIMEOUT_MS = 60_000  # nobody is replaced without being asked

    def __init__(self, *where):
        super().__init__(*where)
        for i in range(6):
            node = self.network.add(f"member-{i + 1}")
            settings = ["cluster-enabled yes", f"cluster-node-timeout {self.NODE_TIMEOUT_MS}",
                        "cluster-require-full-coverage no", "cluster-allow-replica-migration no",
                        "cluster-replica-validity-factor 0", "repl-diskless-sync-delay 0"]
            if not node.enter:
                settings.append(f"cluster-port {free_port()}")
            self.servers.append(self.make(f"member-{i + 1}", settings, node))
        for i, member in enumerate(self.servers[:3]):
            member.call("CLUSTER", "ADDSLOTSRANGE", 16384 * i // 3, 16384 * (i + 1) // 3 - 1)
            member.call("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        first = self.servers[0]
        for member in self.servers[1:]:
            bus = member.call("CONFIG", "GET", "cluster-port")[1]
            mine = int(bus) or member.port + 10000
            first.call("CLUSTER", "MEET", member.node.address, member.port, mine)
        wait_until(lambda: all("cluster_known_nodes:6" in s.call("CLUSTER", "INFO") for s in self.servers), "they meet")
        for replica, member in zip(self.servers[3:], self.servers[:3]):
            wait_until(lambda r=replica, m=member: self.follows(r, m), "a replica knows its primary")
        self.settle()

    @staticmethod
    def follows(replica, member):
        try:
            return replica.call("CLUSTER", "REPLICATE", member.call("CLUSTER", "MYID")) == "OK"
        except Refused:
            return False

    def urls(self, worker):
        return ("redis+cluster://" + ",".join(f"{s.node.address}:{s.port}" for s in self.servers) +
                "?timeout=1s&health_interval=1s")

    def primaries(self):
        return [s for s in self.servers if s.process.poll() is None and s.info("replication", "role") == "master"]

    def replica_of(self, member):
        own = member.call("CLUSTER", "MYID")
        for line in member.call("CLUSTER", "NODES").splitlines():
            words = line.split()
            if words[3] == own and "slave" in words[2] and "fail" not in words[2]:
                return next((s for s in self.servers if s.call("CLUSTER", "MYID") == words[0]), None)
        return None

    def owner(self, slot):
        for member in self.primaries():
            for low, high, *_ in self.own_slots(member):
                if low <= slot <= high:
                    return member
        return None

    def own_slots(self, member):
        own = member.call("CLUSTER", "MYID")
        return [row for row in member.call("CLUSTER", "SLOTS") if row[2][2] == own]

    def is_settled(self):
        try:
            primaries = self.primaries()
            return len(primaries) == 3 and all("cluster_state:ok" in s.call("CLUSTER", "INFO") for s in self.servers) \
                and all(s.info("replication", "connected_slaves") == "1" for s in primaries)
        except (OSError, Refused):
            return False

    def settle(self):
        super().settle()
        wait_until(self.is_settled, "the Cluster is sound")


KINDS = {"one": One, "quorum": Quorum, "sentinel": Sentinel, "cluster": Cluster}
