"""The faults that a run draws from its seed, and what docs/guarantees.md says about each.

A fault that lies outside the promise has `outside`: which rules it may break, and the words that say so. The checker
reports what breaks in that time, and does not count it as a failure. Combinations that the page excludes are not drawn.
"""

import time

from servers import Refused

FORWARD = "guarantees.md, what holds where: the server's clock jumps forward: leases end early: two may believe (*1*)"
TAKEOVER = "guarantees.md, what holds where (*3*): a client that connects for the first time cannot know that the " \
           "server replaced another; a Cluster does not say it"


class Fault:
    """What happens at its begin and at its end. `targets` are names that no other fault touches meanwhile."""

    def __init__(self, kind, targets, seconds, begin, end=lambda: None, text="", tags=(), shuns=(), outside=None):
        self.kind, self.targets, self.seconds = kind, set(targets), seconds
        self.begin, self.end, self.text = begin, end, text
        self.tags, self.shuns, self.outside = {kind, *tags}, set(shuns), outside
        self.until = 0.0


# Not within so many seconds of each other: "Both at once: they may shrink" (data lost, and the clock set back).
APART_S = {frozenset(("data", "clock back")): 4.0,
           frozenset(("data", "clock forward")): 15.0,  # it is set back in the end, too
           # A slot that moves takes its locks to a member that nobody mistrusts for what the former one forgot.
           frozenset(("data", "move")): 10.0,
           # A replica that takes over may lack the last tokens, and its clock must not lack time, too.
           **{frozenset((other, "clocks back")): 6.0 for other in ("data", "failover", "server", "network", "move")},
           # A client that connects for the first time cannot know that the new primary's predecessor had just forgotten.
           frozenset(("data", "failover")): 10.0}


class Faults:
    def __init__(self, run):
        self.run, self.chance = run, run.chance
        self.active, self.ended = [], {}  # tag -> when the last one with it ended
        draw = [(3, self.kill_worker), (3, self.stop_worker), (4, self.cut_worker)]
        draw += {"one": self.of_one, "quorum": self.of_quorum, "sentinel": self.of_sentinel,
                 "cluster": self.of_cluster}[run.kind]()
        if not run.topology.cuts:
            draw = [(weight, make) for weight, make in draw if make not in
                    (self.cut_worker, self.cut_server, self.split, self.empty_server_beside_cut)]
        self.weights, self.makers = zip(*draw)

    def of_one(self):
        return [(2, self.stop_server), (2, self.kill_server), (2, self.empty_server), (1, self.cut_server),
                (2, self.empty_server_beside_cut), (1, self.clock_back), (0.3, self.clock_forward)]

    def of_quorum(self):
        # Fewer restarts: nothing is acquired while two of three are mistrusted.
        return [(2, self.stop_server), (0.7, self.kill_server), (0.5, self.empty_server), (2, self.cut_server),
                (0.5, self.empty_server_beside_cut), (2, self.split), (1, self.clock_back), (0.5, self.clock_forward)]

    def of_sentinel(self):
        return [(2, self.stop_server), (2, self.kill_server), (1, self.empty_server), (2, self.cut_server),
                (2, self.split), (2, self.sentinel_failover), (1, self.clocks_back), (0.3, self.clock_forward)]

    def of_cluster(self):
        return [(2, self.stop_server), (2, self.kill_server), (0.7, self.empty_server),
                (0.7, self.empty_server_beside_cut), (1, self.cut_server), (4, self.move_slot),
                (2, self.cluster_failover), (1, self.crash_failover), (2, self.clocks_back),
                (0.3, self.clock_forward)]

    # ---- drawing

    def next(self):
        """A fault that may begin now, or None."""
        for _ in range(10):
            fault = self.chance.choices(self.makers, self.weights)[0]()
            if fault is not None and self.allowed(fault):
                return fault
        return None

    def allowed(self, fault):
        now = time.monotonic()
        for other in self.active:
            if fault.targets & other.targets or fault.tags & other.shuns or other.tags & fault.shuns:
                return False
        for pair, seconds in APART_S.items():
            for mine in pair & fault.tags:
                (other,) = pair - {mine}
                if any(other in each.tags for each in self.active) or now - self.ended.get(other, -1e9) < seconds:
                    return False
        return True

    def seconds(self, least, most):
        return self.chance.uniform(least, most) * self.run.pace

    # ---- workers

    def kill_worker(self):
        slot = self.chance.choice(self.run.slots)
        return Fault("kill -9 of a worker", [slot.name], self.seconds(0.1, 2), slot.kill, slot.start, slot.name)

    def stop_worker(self):
        slot = self.chance.choice(self.run.slots)
        return Fault("pause of a worker", [slot.name], self.seconds(0.3, 8), lambda: slot.pause(True),
                     lambda: slot.pause(False), slot.name)

    # ---- the network

    def cut(self, kind, targets, pairs, seconds):
        """Cuts the pairs (sender, receiver)."""
        def change(is_cut):
            for sender, receiver in pairs:
                self.run.network.cut(sender, receiver, is_cut)
        text = " ".join(sorted(targets))
        return Fault(kind, targets, seconds, lambda: change(True), lambda: change(False), text, ("network",))

    def between(self, some, others):
        """The directed pairs of a cut, and what kind of cut it is."""
        there = [(a, b) for a in some for b in others if a is not b]
        back = [(b, a) for a, b in there]
        way = self.chance.choice(("both", "both", "there", "back"))
        kind = "partition" if way == "both" else "one-way cut"
        return kind, {"both": there + back, "there": there, "back": back}[way]

    def cut_worker(self):
        slot = self.chance.choice(self.run.slots)
        nodes = self.run.topology.nodes
        if self.chance.random() < 0.4:
            nodes = [self.chance.choice(nodes)]
        kind, pairs = self.between([slot.node], nodes)
        return self.cut(kind, [slot.name], pairs, self.seconds(0.3, 8))

    def cut_server(self):
        server = self.server()
        others = [slot.node for slot in self.run.slots]
        if self.run.network.can_cut_servers:
            others += [node for node in self.run.topology.nodes if node is not server.node]
        kind, pairs = self.between([server.node], others)
        return self.cut(kind, [server.name, *(slot.name for slot in self.run.slots)], pairs, self.seconds(0.3, 7))

    def split(self):
        """Two halves of the network: servers and workers on both sides."""
        nodes = list(self.run.topology.nodes) if self.run.network.can_cut_servers else []
        nodes += [slot.node for slot in self.run.slots]
        self.chance.shuffle(nodes)
        half = self.chance.randint(1, len(nodes) - 1)
        kind, pairs = self.between(nodes[:half], nodes[half:])
        names = [slot.name for slot in self.run.slots] + [s.name for s in self.run.topology.servers]
        return self.cut(kind, names, pairs, self.seconds(0.5, 8))

    # ---- servers

    def server(self):
        return self.chance.choice(self.run.topology.servers)

    def stop_server(self):
        server = self.server()
        return Fault("pause of a server", [server.name], self.seconds(0.2, 5), lambda: server.pause(True),
                     lambda: server.pause(False), server.name, ("server",))

    def kill_server(self):
        server = self.server()
        return Fault("restart with data", [server.name], self.seconds(0.1, 4), server.kill,
                     lambda: server.restart(True), server.name, ("server",))

    def empty_server(self):
        server = self.server()
        return Fault("restart without data", [server.name], self.seconds(0.1, 4), server.kill,
                     lambda: server.restart(False), server.name, ("server", "data"))

    def empty_server_beside_cut(self):
        """A worker is cut off, so it cannot notice that the server is restarted, empty, at the same time."""
        server, slot = self.server(), self.chance.choice(self.run.slots)
        _, pairs = self.between([slot.node], [server.node])
        hidden = self.cut("", [server.name, slot.name], pairs, self.seconds(1, 6))

        def begin():
            hidden.begin()
            server.kill()
            server.restart(False)
        return Fault("restart without data beside a cut", hidden.targets, hidden.seconds, begin, hidden.end, hidden.text,
                     ("server", "data", "network"))

    def clock_back(self):
        """It stays set back. Several servers differ by less than max_lease, as the page asks for."""
        server, by_s = self.server(), self.chance.uniform(0.2, 1.5)
        if len(self.run.topology.servers) > 1 and server.ahead_us < -500_000:
            return None
        return Fault("clock set back", [server.name], 0.1,
                     lambda: server.set_clock(server.ahead_us - int(by_s * 1e6)),
                     text=f"{server.name} {by_s:.1f}s", tags=("clock", "clock back"))

    def clocks_back(self):
        """Those of all servers, which may replace each other, by the same time: clock_skew is 0."""
        servers, by_s = self.run.topology.servers, self.chance.uniform(0.2, 1.5)

        def begin():
            for server in servers:
                server.set_clock(server.ahead_us - int(by_s * 1e6))
        return Fault("clocks set back", [server.name for server in servers], 0.1, begin, text=f"{by_s:.1f}s",
                     tags=("clock", "clocks back"))

    def clock_forward(self):
        """For a while."""
        server, by_us = self.server(), int(self.seconds(1, 10) * 1e6)
        before = server.ahead_us
        return Fault("clock set forward", [server.name], self.seconds(0.5, 4), lambda: server.set_clock(before + by_us),
                     lambda: server.set_clock(before), f"{server.name} {by_us / 1e6:.1f}s", ("clock", "clock forward"),
                     ("data", "failover"), ("exclusion,tokens,delay,sights", self.run.max_lease + by_us / 1e6 + 1, FORWARD))

    # ---- Sentinel and Cluster

    def servers_are_sound(self):
        return not any(fault.tags & {"server", "failover", "move"} for fault in self.active)

    def sentinel_failover(self):
        """Not while anybody is cut off: "after a failover by hand, a second in which a client that no sentinel reaches
        may be granted a lock by the old primary" (deployment.md)."""
        def begin():
            try:
                self.run.topology.others[0].call("SENTINEL", "FAILOVER", "stock")
            except (OSError, Refused):
                pass  # one is going on
        return Fault("failover by hand", [s.name for s in self.run.topology.servers], self.seconds(1, 4), begin,
                     tags=("failover",), shuns=("network", "server"))

    def move_slot(self):
        """The slot of one of the locks. Keys move in the middle, so that requests find it half moved."""
        if not self.servers_are_sound():
            return None
        topology = self.run.topology
        lock = self.chance.choice(self.run.locks)
        slot = topology.servers[0].call("CLUSTER", "KEYSLOT", lock)
        state = {}

        def begin():
            source = topology.owner(slot)
            target = self.chance.choice([s for s in topology.primaries() if s is not source])
            state.update(source=source, target=target)
            target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source.call("CLUSTER", "MYID"))
            source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target.call("CLUSTER", "MYID"))

        def end():
            source, target = state["source"], state["target"]
            while keys := source.call("CLUSTER", "GETKEYSINSLOT", slot, 10):
                try:
                    source.call("MIGRATE", target.node.address, target.port, "", 0, 5000, "KEYS", *keys)
                except Refused:
                    time.sleep(0.1)  # a member that was restarted takes nothing for two seconds
            own = target.call("CLUSTER", "MYID")
            for member in [target, source, *(m for m in topology.primaries() if m not in (source, target))]:
                member.call("CLUSTER", "SETSLOT", slot, "NODE", own)

        return Fault("slot moved", [s.name for s in topology.servers], self.seconds(0.1, 1.5), begin, end, lock,
                     ("move",), ("server", "clock"))

    def cluster_failover(self):
        if not self.servers_are_sound():
            return None
        member = self.chance.choice(self.run.topology.primaries())
        replica = self.run.topology.replica_of(member)
        if replica is None:
            return None

        def begin():
            try:
                replica.call("CLUSTER", "FAILOVER")
            except (OSError, Refused):
                pass  # it has not heard of its primary for a moment
        return Fault("failover by hand", [s.name for s in self.run.topology.servers], self.seconds(1, 3), begin,
                     text=member.name, tags=("failover",), shuns=("server",))

    def crash_failover(self):
        """kill -9 of a primary; its replica takes over; it comes back as a replica."""
        if not self.servers_are_sound():
            return None
        topology = self.run.topology
        member = self.chance.choice(topology.primaries())
        replica = topology.replica_of(member)
        if replica is None:
            return None

        def begin():
            member.kill()
            for other in topology.servers:
                if other is not member:
                    other.call("CONFIG", "SET", "cluster-node-timeout", 2000)

        def end():
            until = time.monotonic() + 20
            while replica.info("replication", "role") != "master" and time.monotonic() < until:
                time.sleep(0.1)
            member.restart(True)
            for other in topology.servers:
                other.call("CONFIG", "SET", "cluster-node-timeout", topology.NODE_TIMEOUT_MS)

        return Fault("failover after kill -9", [s.name for s in topology.servers], self.seconds(2, 5), begin, end,
                     member.name, ("failover", "server"), ("server", "network", "clock"),
                     ("exclusion,tokens,delay,sights", self.run.max_lease + 3, TAKEOVER))
