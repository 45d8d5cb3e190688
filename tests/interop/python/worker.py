"""redis-py's Lock as a worker beside holdfast; ../run has the conversation."""

import json
import sys
import threading
import time

import redis


def increment(path, section):
    """Adds one to the number in the file, slowly enough for another to come in between."""
    with open(path) as file:
        number = int(file.read())
    time.sleep(section)
    with open(path, "w") as file:
        file.write(str(number + 1))


class Worker:
    def __init__(self, words):
        self.words = words
        host, port = words["address"].split(":")
        self.server = redis.Redis(host=host, port=int(port))
        self.guard = threading.Lock()
        self.done = {"cycles": 0, "longest_wait_ms": 0.0, "errors": 0, "first_error": ""}

    def lock(self):
        return self.server.lock(self.words["key"], timeout=int(self.words["lease_ms"]) / 1e3, sleep=0.01,
                                thread_local=False)

    def work(self, end):
        lock = self.lock()
        while time.monotonic() < end:
            asked = time.monotonic()
            try:
                lock.acquire()
                waited = (time.monotonic() - asked) * 1e3
                increment(self.words["file"], int(self.words["section_us"]) / 1e6)
                with self.guard:
                    self.done["cycles"] += 1
                    self.done["longest_wait_ms"] = max(self.done["longest_wait_ms"], waited)
                lock.release()
            except redis.RedisError as failed:
                with self.guard:
                    self.done["errors"] += 1
                    self.done["first_error"] = self.done["first_error"] or str(failed)

    def run(self, seconds):
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=self.work, args=(end,)) for _ in range(int(self.words["threads"]))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        print(json.dumps(self.done), flush=True)


def main():
    worker = Worker(dict(word.split("=", 1) for word in sys.argv[1:]))
    print("ready", flush=True)
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "run":
            worker.run(float(rest[0]))
            continue
        lock = worker.lock()  # "hold" and "once"
        lock.acquire()
        print("acquired", flush=True)
        if command == "once":
            lock.release()
            print("released", flush=True)


main()
