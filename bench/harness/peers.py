"""Other locks, each by its own client library and with the settings that suit it best: bench/peers says which.

etcd and ZooKeeper bring servers of their own. Redis keeps nothing on disk here; so they have their data in memory, and
ZooKeeper does not wait for the disk either.
"""

import os
import subprocess
import sys

from .contestants import words
from .servers import Server
from .team import Team

NAMES = ("redis-py", "redlock", "redis-semaphore", "redsync", "rueidislock", "redisson", "etcd", "curator")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "peers")
missing = {name: "not installed" for name in NAMES}  # name -> why it cannot take part

# Of the several logs that are there, the one that says nothing must come first: it would otherwise be left to chance.
JARS = "/usr/share/java/slf4j-nop.jar:/usr/share/java/*"

# The commands that a client sends itself. Some locks' scripts call SET, and the server counts that, too.
SENT = {"redlock": ("evalsha", "eval"), "rueidislock": ("evalsha", "eval"),
        "redisson": ("evalsha", "eval", "subscribe", "unsubscribe")}


def install():
    for name in NAMES:
        print(f"bench: setting up {name}", file=sys.stderr, flush=True)
        done = subprocess.run([os.path.join(ROOT, "bench", "peers", "setup"), name, BUILD], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode == 0:
            missing.pop(name, None)
        else:
            missing[name] = (done.stdout.strip().splitlines() or ["its setup failed"])[-1]
            print(f"bench: without {name}: {missing[name]}", file=sys.stderr, flush=True)


class InMemory(Server):
    def __init__(self):
        super().__init__(directory="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


class Etcd(InMemory):
    def command(self):
        peer = f"http://127.0.0.1:{self.second_port}"
        return ["etcd", "--data-dir", os.path.join(self.directory, "data"), "--listen-client-urls", self.url(),
                "--advertise-client-urls", self.url(), "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--log-level", "error"]

    def url(self):
        return f"http://127.0.0.1:{self.port}"


class ZooKeeper(InMemory):
    def command(self):
        config = os.path.join(self.directory, "zoo.cfg")
        with open(config, "w") as file:
            file.write(f"tickTime=2000\ndataDir={self.directory}\nclientPort={self.port}\nmaxClientCnxns=0\n"
                       f"clientPortAddress=127.0.0.1\nadmin.enableServer=false\n")
        return ["java", "-cp", JARS, "-Dzookeeper.forceSync=no", "-Xmx512m",
                "org.apache.zookeeper.server.ZooKeeperServerMain", config]

    def url(self):
        return f"127.0.0.1:{self.port}"


class WithServer(Team):
    """A team whose server comes and goes with it."""

    def __init__(self, name, server, commands):
        self.own = server
        try:
            super().__init__(name, commands, server)
        except Exception:
            server.stop()
            raise

    def stop(self):
        super().stop()
        self.own.stop()


def team(name, field):
    if name in missing:
        raise RuntimeError(missing[name])
    processes = range(field.workload.processes)
    if name in ("etcd", "curator"):
        server = Etcd() if name == "etcd" else ZooKeeper()
        program = {"etcd": [os.path.join(BUILD, "etcd")],
                   "curator": ["java", "-cp", f"{BUILD}:{JARS}", "-Xmx256m", "CuratorContestant"]}[name]
        return WithServer(name, server, [program + words(field.workload, i, url=server.url()) for i in processes])
    node = ["node", os.path.join(BUILD, "node", "contestant.js"), f"library={name}"]
    go = [os.path.join(BUILD, "go-redis"), f"library={name}"]
    program = {"redis-py": ["/usr/bin/python3", os.path.join(ROOT, "bench", "peers", "redis_py.py")],
               "redlock": node, "redis-semaphore": node, "redsync": go, "rueidislock": go,
               "redisson": ["java", "-Dslf4j.internal.verbosity=ERROR", "-cp", f"{BUILD}:{BUILD}/jars/*", "-Xmx256m",
                            "RedissonContestant"]}[name]
    commands = [program + words(field.workload, i, url=field.url()) for i in processes]
    return Team(name, commands, field.redis_servers(), top_level=SENT.get(name, ("set", "evalsha", "eval")))
