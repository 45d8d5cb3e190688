#!/usr/bin/python3
"""A rolling upgrade: clients of two versions on one Redis, each with the scripts of its own version.

The same steps are run twice: once with the present scripts alone, once with each step by the scripts of either version,
drawn at random. Both must give the same answers, the same messages to waiters and the same keys. On the way it checks
what must hold by itself: one writer or many readers, tokens that grow, nothing left but the fencing mark.

Then histories of a mutex in which each client has a version, and those of the present one hold by marked ids, which the
former one does not know: nothing to compare, but all that must hold by itself does. The same with notes, which only
clients of the present version have: they are there with those who hold or wait, and only with them.

    rolling_test.py [FORMER [SEEDS]]     FORMER: an archive beside this file without its ending, by default the latest;
                                         see `keep`. SEEDS: how many histories for each kind of lock
"""
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import time

import redis

HERE = os.path.dirname(os.path.realpath(__file__))
PRESENT = os.path.join(HERE, "..", "..", "src", "wire")
LEASE, RETENTION, INTERVAL, KEEP = "60000", "3600000", "10000", "61000"
PREFERENCES = ("arrival", "readers", "writers")


def scripts_of_the_tree():
    """{"mutex/acquire.lua": text}"""
    found = {}
    for folder, _, names in os.walk(PRESENT):
        for name in names:
            if name.endswith(".lua"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    found[os.path.relpath(path, PRESENT)] = file.read()
    return found


def scripts_kept(path):
    with tarfile.open(path) as archive:
        return {entry.name.removeprefix("src/wire/"): archive.extractfile(entry).read().decode()
                for entry in archive if entry.isfile()}


def with_includes(texts, name):
    """As cmake/embed_scripts_tool.cmake puts them in."""
    text, done = texts[name + ".lua"], set()
    while found := re.search(r"^--@(include|paste) ([a-z_/]+\.lua)\n", text, re.MULTILINE):
        inside = ""
        if found[1] == "paste" or found[2] not in done:
            inside = texts[found[2]]
            done.add(found[2])
        text = text[:found.start()] + inside + text[found.end():]
    return text


class Server:
    def __init__(self, folder):
        self.path = os.path.join(folder, "redis.sock")
        self.process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", self.path, "--save", "",
                                         "--dir", folder], stdout=subprocess.DEVNULL)
        self.link = redis.Redis(unix_socket_path=self.path, decode_responses=True)
        for _ in range(3000):
            try:
                self.link.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.01)
        raise RuntimeError("the server does not start")

    def stop(self):
        self.process.kill()
        self.process.wait()


class Scripts:
    def __init__(self, link, texts):
        self.link, self.texts, self.shas = link, texts, {}

    def run(self, name, keys, words):
        if name not in self.shas:
            self.shas[name] = self.link.script_load(with_includes(self.texts, name))
        try:
            return self.link.evalsha(self.shas[name], len(keys), *keys, *words)
        except redis.ResponseError as error:
            return ["error", str(error).split()[0]]


class Client:
    """One holder or waiter: an id, and what it was told. It begins anew with each acquisition."""

    def __init__(self, number):
        self.number, self.turn, self.tag, self.mark = number, 0, f"{number:016x}", ""
        self.note = ""
        self.begin()

    def begin(self):
        self.turn += 1
        turn = f"1{self.turn:018}" if self.note else self.turn  # 19 digits: it has a note
        self.id = f"hf_{self.tag}.{self.mark}{turn}.{'A' * 22}"
        self.token, self.ticket, self.wants, self.held = "0", "0", "", ""


class World:
    """One lock, its clients and the messages that they get. `choose` says whose scripts the next step runs."""

    def __init__(self, server, name, kind, preference, clients, choose):
        self.link, self.kind, self.preference, self.choose = server.link, kind, preference, choose
        self.lock = f"hf:{{{name}}}"
        side = ("queue", "waiters", "fence") + (("leases", "grants") if kind == "rw" else ())
        self.keys = [self.lock] + [f"{self.lock}:{part}" for part in side]
        self.clients = [Client(hash_free(name, number)) for number in range(clients)]
        self.former_holds = {}
        self.listener = redis.Redis(unix_socket_path=server.path, decode_responses=True).pubsub()
        self.listener.subscribe(*(self.channel(client) for client in self.clients))
        for _ in self.clients:
            self.listener.get_message(timeout=10)
        self.greatest = 0

    def channel(self, client):
        return f"hf:wake:{client.tag}"

    def holder(self, name):
        """The holder that a refusal names: of several readers the one whose lease ends last, which is chance here."""
        return self.alias(name) if self.kind == "mutex" else "somebody"

    def alias(self, name):
        """Ids as those of client 0, 1, ... by turns, so that two worlds can be compared."""
        found = re.fullmatch(r"(?:r:)?hf_([0-9a-f]{16})\.(\d+)\..*", str(name))
        if not found:
            return name
        numbers = [client.tag for client in self.clients]
        return f"{numbers.index(found[1])}.{found[2]}" if found[1] in numbers else "?"

    def run(self, script, words, keys=None):
        return self.choose().run(f"{self.kind}/{script}", self.keys if keys is None else keys, words)

    def granted(self, token):
        if int(token) > self.greatest:
            self.greatest = int(token)

    def acquire(self, client, wants, waits):
        if client.held == "" and client.wants == "":
            client.begin()
        if waits:
            client.wants = wants
        channel = self.channel(client) if waits else ""
        before = client.token
        if self.kind == "mutex":
            answer = self.run("acquire", [client.id, LEASE, "0", RETENTION, channel, client.ticket, INTERVAL, KEEP, "0", "0"])
        else:
            answer = self.run("acquire", [client.id, RETENTION, self.preference, wants, LEASE, "0", channel, client.ticket,
                                          INTERVAL, KEEP, client.token if wants == "u" else "0", "0", "0"])
        if answer[0] == 1:
            self.believe(client, str(answer[1]), wants, before)
            if client.mark:
                self.granted(answer[4])
            return [1]
        if answer[0] == 2:
            client.ticket = answer[3]
            return [2, self.holder(answer[2]), int(answer[4])]
        if answer[0] == 0:
            return [0, self.holder(answer[2]), *answer[3:]]
        return answer

    def believe(self, client, token, wants, before):
        if token != before:
            assert int(token) > self.greatest, f"token {token} after {self.greatest}"
        self.granted(token)
        client.token, client.ticket, client.wants = token, "0", ""
        client.held = {"r": "r", "w": client.held if client.held == "b" else "w", "u": "b"}[wants]

    def release(self, client, left=""):
        client_id, token = client.id, client.token if client.held else "0"
        if left == "" or client.held == "":
            client.held = client.wants = left = ""
        else:
            client.held = left
        if self.kind == "mutex":
            answer = self.run("release", [client_id, token, RETENTION, "0", "0"])
        else:
            answer = self.run("release", [client_id, RETENTION, self.preference, token, left, LEASE, "0", "0"])
        return [answer[0], *(answer[1:] if answer[0] == 1 else [self.holder(each) for each in answer[2:]])]

    def late_release(self, client):
        """A copy of a release of an earlier hold."""
        if client.number not in self.former_holds:
            return []
        client_id, token = self.former_holds[client.number]
        words = ([client_id, token, RETENTION, "0", "0"] if self.kind == "mutex" else
                 [client_id, RETENTION, self.preference, token, "", LEASE, "0", "0"])
        answer = self.run("release", words)
        assert answer[0] != 1, "a late copy of a release ended something"
        return [answer[0]]

    def renew(self, client):
        if self.kind == "mutex":
            answer = self.run("renew", [client.id, LEASE], self.keys[:1])
            return [answer[0], *(self.holder(each) for each in answer[2:3])]
        answer = self.run("renew", [client.id, RETENTION, self.preference, LEASE, "0"])
        if answer[0] == 1 and client.held:
            client.token = str(answer[2])
            client.held = answer[1]
            self.granted(client.token)
        return [answer[0], answer[1] if answer[0] == 1 else [self.holder(each) for each in answer[2:3]]]

    def renew_alone(self, client):
        """As while a slot moves. Of a mutex every renewal is alone."""
        if self.kind == "mutex":
            return self.renew(client)
        answer = self.run("renew_alone", [client.id, LEASE], self.keys[:1] + self.keys[4:6])
        return answer[:2] if answer[0] == 1 else answer[:1]

    def release_alone(self, client):
        """As while a slot moves: the full release follows."""
        if self.kind == "rw" or not client.held:
            return []
        answer = self.run("release_alone", [client.id], self.keys[:1])
        return [answer[0], self.release(client)]

    def raise_token(self, client):
        if not client.held:
            return []
        token = str(max(self.greatest, int(client.token)) + 1)
        words = ([client.id, client.token, token, RETENTION] if self.kind == "mutex" else
                 [client.id, RETENTION, self.preference, client.token, token])
        answer = self.run("raise", words)
        if answer[0] == 1:
            client.token = token
            self.granted(token)
        return [answer[0]]

    def confirm(self, client):
        keys = [self.lock, self.lock + ":fence"] if self.kind == "mutex" else self.keys[:1] + self.keys[4:6]
        answer = self.run("confirm", [client.id, client.token or "0"], keys)
        return [answer > 0 if isinstance(answer, int) else answer]

    def cancel(self, client):
        if self.kind == "mutex" or client.wants != "u":
            return []
        client.wants = ""
        answer = self.run("cancel", [client.id, RETENTION, self.preference, "0"])
        if answer[0] == 1:
            client.held, client.token = answer[1], str(answer[2])
            self.granted(client.token)
        return answer[:2]

    def messages(self):
        """Everything that was published so far, as [channel's client, word, holds...]."""
        self.listener.ping()
        told = []
        while (message := self.listener.get_message(timeout=10)) is not None and message["type"] != "pong":
            words = message["data"].split()
            if words[0] == "grant_block":  # id, token, ceiling, waiters
                words = [part for at, part in enumerate(words) if at == 0 or at % 4 in (1, 2)] + words[3::4]
                ceilings = [words.pop() for _ in range((len(words) - 1) // 3)]
                words[0] = "grant"
            else:
                ceilings = []
            if words[0] == "grant":
                for hold, token in zip(words[1::2], words[2::2]):
                    client = next(each for each in self.clients if each.tag in hold)
                    assert hold == client.id and client.wants, "a grant that nobody asked for"
                    assert int(token) > self.greatest, f"token {token} after {self.greatest}"
                    self.believe(client, token, client.wants, "0" if client.wants != "u" else client.token)
                for ceiling in ceilings:
                    self.granted(ceiling)
                told.append([words[0], sorted(self.alias(each) for each in words[1::2])])
            else:
                told.append([words[0], [self.alias(each) for each in words[1:2]]])
        return sorted(told, key=str)

    def state(self):
        queue = [self.alias(each) for each in self.link.zrange(self.keys[1], 0, -1)]
        waiters = sorted(self.alias(each) for each in self.link.hkeys(self.keys[2]))
        if self.kind == "mutex":
            return [self.alias(self.link.get(self.lock)), queue, waiters]
        fields = self.link.hgetall(self.lock)
        readers = [self.alias(each) for each in fields if each.startswith("r:")]
        writer = self.alias(fields["writer"]) if "writer" in fields else None
        if fields.get("mode") == "write":
            assert all(reader == writer for reader in readers), f"{writer} writes while {readers} read"
        assert len(readers) == int(fields.get("rcount", 0)), fields
        return [fields.get("mode"), sorted(readers), writer, queue, waiters,
                sorted(self.alias(each) for each in self.link.hkeys(self.keys[5]))]

    def step(self, what, number):
        client = self.clients[number]
        former = (client.id, client.token) if client.held else None
        if what in ("read", "write", "upgrade"):
            if self.kind == "mutex" and what != "write":
                return None
            wants = {"read": "r", "write": "w", "upgrade": "u"}[what]
            if (client.held != "") != (what == "upgrade") or client.wants not in ("", wants):
                return None
            answer = self.acquire(client, wants, True)
        elif what == "try":
            answer = self.acquire(client, "w", False) if not client.held and not client.wants else []
        elif what == "try_read":
            answer = self.acquire(client, "r", False) if self.kind == "rw" and not client.held and not client.wants else []
        elif what == "downgrade":
            answer = self.release(client, "r") if self.kind == "rw" and client.held in ("w", "b") and not client.wants else []
        elif what in ("release", "release_alone"):
            answer = getattr(self, what)(client)
            if answer:
                client.begin()
                if former:
                    self.former_holds[client.number] = former
        else:
            answer = getattr(self, what)(client)
        return [answer, self.messages(), self.state()]

    def end(self):
        for client in self.clients:
            self.release(client)
            self.messages()
        for client in self.clients:  # who was served meanwhile
            self.release(client)
        left = [key for key in self.link.keys(self.lock.replace("[", "?") + "*")]
        assert set(left) <= {self.lock + ":fence"}, f"left behind: {left}"
        self.listener.close()
        self.link.delete(*left or ["-"])


class MarkedWorld(World):
    """A mutex. The first two clients have the former version, the others the present one and marked ids."""

    def __init__(self, server, name, former, present):
        super().__init__(server, name, "mutex", "arrival", 4, None)
        self.versions = (former, former, present, present)
        for client in self.clients[2:]:
            client.mark = "0"
            client.begin()

    def run(self, script, words, keys=None):
        client = next(at for at, each in enumerate(self.clients) if each.tag in words[0])
        return self.versions[client].run(f"mutex/{script}", self.keys if keys is None else keys, words)

    def renew(self, client):
        if not client.mark:
            return super().renew(client)
        answer = self.run("renew_block", [client.id, LEASE, str(self.greatest + 5), RETENTION], self.keys[:2] + self.keys[3:4])
        if answer[0] == 1:
            assert client.held, "somebody else's hold was renewed"
            self.granted(answer[4])  # it may use the tokens up to there
        return answer[:1]

    def play(self, history):
        for what, number in history:
            before = self.link.get(self.lock)
            answer = self.step("renew" if what in ("raise_token", "confirm") and number > 1 else what, number)
            holders = [client.id for client in self.clients if client.held]
            assert holders == ([self.link.get(self.lock)] if holders else []), f"{holders} hold after {what}: {answer}"
            assert holders or not self.state()[1], f"nobody holds, and {self.state()[1]} wait, after {before}, {what}"
        self.end()


class NotedWorld(World):
    """A mutex. The first two clients have the former version, the others the present one and notes."""

    def __init__(self, server, name, former, present):
        super().__init__(server, name, "mutex", "arrival", 4, None)
        self.versions = (former, former, present, present)
        for number in (2, 3):
            self.clients[number].note = f"note of {number}"
            self.clients[number].begin()

    def run(self, script, words, keys=None):
        number = next(at for at, each in enumerate(self.clients) if each.tag in words[0])
        client, keys = self.clients[number], self.keys if keys is None else keys
        if client.note and script in ("acquire", "release"):
            keys = keys + [self.lock + ":gap", self.lock + ":notes"]
            words = words + ["1", client.note] if script == "acquire" else words
        elif client.note and script == "renew":
            keys = keys + [self.lock + ":notes"]
        return self.versions[number].run(f"mutex/{script}", keys, words)

    def play(self, history):
        for what, number in history:
            answer = self.step({"release_alone": "release", "raise_token": "renew", "confirm": "renew"}.get(what, what), number)
            notes = self.link.hgetall(self.lock + ":notes")
            expected = {client.id: client.note for client in self.clients if client.note and (client.held or client.wants)}
            assert notes == expected, f"{notes} and not {expected} after {what}: {answer}"
            assert not notes or self.link.pttl(self.lock + ":notes") > 0
        self.end()


def hash_free(name, number):
    """A client's number: the worlds of one server have clients of their own."""
    return int.from_bytes(name.encode()[-6:], "big") * 16 + number


STEPS = ("read", "write", "try", "try_read", "upgrade", "downgrade", "release", "release", "renew", "renew_alone",
         "release_alone", "late_release", "raise_token", "confirm", "cancel")


def compare(server, former, present, kind, preference, seed):
    """One random history in both worlds. Returns how many steps ran in each."""
    draw = random.Random(f"{kind} {preference} {seed}")
    history = [(draw.choice(STEPS), draw.randrange(4)) for _ in range(40)]
    plain = World(server, f"p{seed:05}", kind, preference, 4, lambda: present)
    mixed = World(server, f"m{seed:05}", kind, preference, 4, lambda: draw.choice((former, present)))
    for at, (what, number) in enumerate(history):
        expected, got = plain.step(what, number), mixed.step(what, number)
        if expected != got:
            raise AssertionError(f"{kind} {preference} seed {seed}, step {at}: {what} by {number}\n"
                                 f"  present alone: {expected}\n  both versions: {got}\n  after {history[:at]}")
    plain.end()
    mixed.end()
    return len(history)


def main():
    kept = sorted((name.removesuffix(".tar.gz") for name in os.listdir(HERE) if name.endswith(".tar.gz")),
                  key=lambda name: [int(part) for part in name.split(".")])
    version = sys.argv[1] if len(sys.argv) > 1 else kept[-1]
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 25
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            former = Scripts(server.link, scripts_kept(os.path.join(HERE, version + ".tar.gz")))
            present = Scripts(server.link, scripts_of_the_tree())
            steps = sum(compare(server, former, present, kind, preference, seed)
                        for kind, preference in (("mutex", "arrival"), *(("rw", each) for each in PREFERENCES))
                        for seed in range(seeds))
            for seed in range(seeds * 2):
                draw = random.Random(f"marked {seed}")
                MarkedWorld(server, f"k{seed:05}", former, present).play(
                    [(draw.choice(STEPS), draw.randrange(4)) for _ in range(40)])
                NotedWorld(server, f"n{seed:05}", former, present).play(
                    [(draw.choice(STEPS), draw.randrange(4)) for _ in range(40)])
        finally:
            server.stop()
    ran = {name for scripts in (former, present) for name in scripts.shas}
    print(f"{steps} steps by {version} and the present version agree; scripts: {' '.join(sorted(ran))}")
    kept = {name.removesuffix(".lua") for name in former.texts if "common/" not in name}
    # A few histories may miss one; many reach all.
    assert seeds < 10 or kept == set(former.shas), f"never ran: {sorted(kept - set(former.shas))}"


if __name__ == "__main__":
    main()
