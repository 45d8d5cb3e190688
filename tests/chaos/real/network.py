"""A network of nodes whose links can be cut, each direction by itself.

Namespaces: each node is a network namespace with an address of its own, on a bridge in one more namespace, so nothing
outside is touched. Nodes know each other by fixed entries of the neighbour table. A cut direction has a wrong entry:
what is sent arrives nowhere, and nobody is told, as on a broken network.

Proxies, where namespaces are not allowed: all nodes are on 127.0.0.1, and each pair of a worker and a server has a
proxy of its own, which holds back what it should forward while a direction is cut.
"""

import asyncio
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import threading

PREFIX = "holdfast-chaos-"
NOWHERE = "02:00:00:00:ff:ff"


def end_with_parent():
    """In a child: it is killed when this process ends, however that happens."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


class Namespaces:
    name = "network namespaces"
    can_cut_servers = True

    def __init__(self):
        self.prefix = f"{PREFIX}{os.getpid()}-"
        self.nodes = []
        remove_those_of_the_dead()
        ip("netns", "add", self.prefix + "bridge")
        ip("-n", self.prefix + "bridge", "link", "add", "name", "br0", "type", "bridge")
        ip("-n", self.prefix + "bridge", "link", "set", "br0", "up")

    @staticmethod
    def allowed():
        trial = f"{PREFIX}{os.getpid()}-trial"
        if shutil.which("ip") is None or shutil.which("nsenter") is None:
            return False
        try:
            ip("netns", "add", trial)
            ip("-n", trial, "link", "add", "name", "br0", "type", "bridge")
            ip("-n", trial, "link", "add", "name", "eth0", "type", "veth", "peer", "name", "eth1")
            subprocess.run(["nsenter", f"--net=/run/netns/{trial}", "true"], check=True, capture_output=True)
            return True
        except subprocess.CalledProcessError:
            return False
        finally:
            ip("netns", "del", trial, check=False)

    def add(self, name):
        node = Node(name, f"10.0.0.{len(self.nodes) + 1}", ["nsenter", f"--net=/run/netns/{self.prefix}{name}"])
        number, space = len(self.nodes) + 1, self.prefix + name
        node.space, node.mac = space, f"02:00:00:00:00:{number:02x}"
        ip("netns", "add", space)
        ip("-n", space, "link", "set", "lo", "up")
        ip("-n", space, "link", "add", "name", "eth0", "address", node.mac, "type", "veth",
           "peer", "name", f"node{number}", "netns", self.prefix + "bridge")
        ip("-n", space, "address", "add", f"{node.address}/24", "dev", "eth0")
        ip("-n", space, "link", "set", "eth0", "up")
        ip("-n", self.prefix + "bridge", "link", "set", f"node{number}", "master", "br0", "up")
        for other in self.nodes:
            self.cut(node, other, False)
            self.cut(other, node, False)
        self.nodes.append(node)
        return node

    def cut(self, sender, receiver, is_cut):
        """Whether what the sender sends to the receiver is lost."""
        ip("-n", sender.space, "neighbour", "replace", receiver.address, "lladdr", NOWHERE if is_cut else receiver.mac,
           "nud", "permanent", "dev", "eth0")

    def address_for(self, worker, server, port):
        return f"{server.address}:{port}"

    def close(self):
        for node in self.nodes:
            ip("netns", "del", node.space, check=False)
        ip("netns", "del", self.prefix + "bridge", check=False)


class Node:
    def __init__(self, name, address, enter):
        self.name, self.address, self.enter = name, address, enter

    def start(self, command, **options):
        """Starts the program on this node. Its pid is that of the program."""
        return subprocess.Popen(self.enter + command, preexec_fn=end_with_parent, **options)


def remove_those_of_the_dead():
    """Removes namespaces of runs that were killed."""
    for line in ip("netns", "list", check=False).stdout.splitlines():
        name = line.split()[0]
        if name.startswith(PREFIX) and not os.path.exists(f"/proc/{name[len(PREFIX):].split('-')[0]}"):
            ip("netns", "del", name, check=False)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Proxies:
    name = "proxies on loopback"
    can_cut_servers = False

    def __init__(self):
        self.nodes = []
        self.open = {}   # (name of the sender, name of the receiver) -> asyncio.Event that is set while it forwards
        self.ports = {}  # (worker, server, port) -> port of the proxy
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def add(self, name):
        self.nodes.append(Node(name, "127.0.0.1", []))
        return self.nodes[-1]

    def cut(self, sender, receiver, is_cut):
        event = self.forwards(sender.name, receiver.name)
        self.loop.call_soon_threadsafe(event.clear if is_cut else event.set)

    def forwards(self, sender, receiver):
        if (sender, receiver) not in self.open:
            self.open[sender, receiver] = asyncio.Event()
            self.open[sender, receiver].set()
        return self.open[sender, receiver]

    def address_for(self, worker, server, port):
        key = (worker.name, server.name, port)
        if key not in self.ports:
            self.ports[key] = asyncio.run_coroutine_threadsafe(self.listen(*key), self.loop).result()
        return f"127.0.0.1:{self.ports[key]}"

    async def listen(self, worker, server, port):
        there, back = self.forwards(worker, server), self.forwards(server, worker)

        async def pump(gate, reader, writer):
            try:
                while data := await reader.read(65536):
                    await gate.wait()
                    writer.write(data)
                    await writer.drain()
                await gate.wait()
            except OSError:
                pass
            finally:
                writer.close()

        async def connected(reader, writer):
            await there.wait()
            await back.wait()
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.close()
                return
            await asyncio.gather(pump(there, reader, far_writer), pump(back, far_reader, writer))

        listening = await asyncio.start_server(connected, "127.0.0.1", 0)
        return listening.sockets[0].getsockname()[1]

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


def make(kind):
    """kind: namespaces, proxies, or auto."""
    if kind == "auto":
        kind = "namespaces" if Namespaces.allowed() else "proxies"
    return Namespaces() if kind == "namespaces" else Proxies()
