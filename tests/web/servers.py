"""What the tests of the page need around it: a Redis of their own, `holdfast web`, and locks written by hand."""

import os
import re
import subprocess
import tempfile
import time

import redis

PATIENCE = 60


def hold_id(client, number=1):
    return f"hf_{client:016d}.{number}.{client:022d}"


class Box:
    """A directory and everything that was started in it; both go at the end."""

    def __init__(self, binary):
        self.binary = binary
        self.directory = tempfile.TemporaryDirectory(prefix="hf-web.")
        self.path = self.directory.name
        self.started = []
        self.start_redis()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.directory.cleanup()

    def start(self, words, **more):
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, **more)
        self.started.append(process)
        return process

    def start_redis(self):
        socket = os.path.join(self.path, "redis.sock")
        with open(os.path.join(self.path, "redis.log"), "wb") as log:
            self.redis_process = self.start(
                ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", self.path, "--save", "",
                 "--maxmemory-policy", "noeviction"], stdout=log, stderr=log)
        wait_until(lambda: os.path.exists(socket), "redis-server listens")
        self.url = "unix://" + socket
        self.redis = redis.Redis(unix_socket_path=socket)
        wait_until(self.redis.ping, "redis-server answers")

    def environment(self):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        return clean | {"HOLDFAST_URL": self.url, "HOLDFAST_HOME": os.path.join(self.path, "home")}

    def start_web(self, *options, listen="127.0.0.1:0"):
        """Returns the address that it prints."""
        errors = os.path.join(self.path, f"web-{len(self.started)}.log")
        with open(errors, "wb") as log:
            self.web = self.start([self.binary, "web", "--listen", listen, *options], env=self.environment(),
                                  stderr=log)

        def address():
            with open(errors) as file:
                found = re.search(r"listening on (\S+)", file.read())
            return found and found.group(1)

        return wait_until(address, "holdfast web listens")

    def run(self, name, *command, options=()):
        return self.start([self.binary, "run", *options, name, "--", *command], env=self.environment(),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    # --- locks as the scripts would have written them

    def now_us(self):
        seconds, us = self.redis.time()
        return seconds * 1_000_000 + us

    def introduce(self, client, host, program, user, pid=None):
        self.redis.hset(f"hf:client:hf_{client:016d}",
                        mapping={"host": host, "pid": pid or 1000 + client, "program": program, "user": user})

    def hold(self, name, client, held=0.0, lease=30.0, number=1):
        self.redis.set(f"hf:{{{name}}}", hold_id(client, number), px=int(lease * 1000))
        self.redis.set(f"hf:{{{name}}}:fence", self.now_us() - int(held * 1e6), px=3_600_000)

    def wait_for(self, name, client, waited=0.0, number=1):
        key, now, id = f"hf:{{{name}}}", self.now_us(), hold_id(client, number)
        self.redis.zadd(key + ":queue", {id: now - int(waited * 1e6)})
        self.redis.hset(key + ":waiters", id, f"30000 10000 {now} 0 w hf:wake:{id.split('.')[0]}")

    def stay(self, name):
        """The waiters poll."""
        key, now = f"hf:{{{name}}}", self.now_us()
        for id, text in self.redis.hgetall(key + ":waiters").items():
            words = text.decode().split()
            words[2] = str(now)
            self.redis.hset(key + ":waiters", id, " ".join(words))

    def leave(self, name, client, number=1):
        key, id = f"hf:{{{name}}}", hold_id(client, number)
        self.redis.zrem(key + ":queue", id)
        self.redis.hdel(key + ":waiters", id)

    def hand_over(self, name, client, lease=30.0, number=1):
        self.leave(name, client, number)
        self.hold(name, client, 0, lease, number)

    def free(self, name):
        self.redis.delete(f"hf:{{{name}}}")


def wait_until(question, why):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if found := question():
                return found
        except redis.exceptions.ConnectionError:
            pass
        time.sleep(0.05)
    raise AssertionError("never came true: " + why)
