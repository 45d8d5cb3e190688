"""A stand-in for go-redislock beside holdfast; ../run has the conversation.

It is not go-redislock, whose modules the configured Go proxy refuses (403). It has scripts of the same form, written for
this project: the same keys, the same types, and one expiry that every step sets anew. What they show is that two programs
of that form and holdfast can share a lock, not that a certain release of go-redislock does.

    library=lock  the re-entrant lock at `{name}`, with a count at `{name}:count:<token>`
    library=fair  the fair lock at `{name}`, whose waiters are in `{name}:queue` by the second; it shortens that key's expiry
    library=rw    RLock and WLock, a hash at `name`; every fourth cycle writes, the others read
"""

import json
import sys
import threading
import time
import uuid

import redis

LOCK = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('INCR', KEYS[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
"""
UNLOCK = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('DECR', KEYS[2]) > 0 then return 1 end
redis.call('DEL', KEYS[1], KEYS[2])
return 1
"""
FAIR_LOCK = """
redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, ARGV[3] - ARGV[4])
redis.call('ZADD', KEYS[2], 'NX', ARGV[3], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[4])
if redis.call('ZRANGE', KEYS[2], 0, 0)[1] ~= ARGV[1] then return 0 end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
"""
FAIR_UNLOCK = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"
READ_LOCK = """
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode == 'write' then return 0 end
redis.call('HSET', KEYS[1], 'mode', 'read')
redis.call('HINCRBY', KEYS[1], 'r:' .. ARGV[1], 1)
redis.call('HINCRBY', KEYS[1], 'rcount', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""
READ_UNLOCK = """
if redis.call('HDEL', KEYS[1], 'r:' .. ARGV[1]) == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], 'rcount', -1) == 0 then redis.call('DEL', KEYS[1]) end
return 1
"""
WRITE_LOCK = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'mode', 'write', 'writer', ARGV[1], 'wcount', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""
WRITE_UNLOCK = "return redis.call('HGET', KEYS[1], 'writer') == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"

REQUEST_TIMEOUT_S = 5  # of the fair lock: so long it keeps the queue
PAUSE_S = 0.01         # between two tries


class Worker:
    def __init__(self, words):
        self.words = words
        host, port = words["address"].split(":")
        self.server = redis.Redis(host=host, port=int(port))
        self.scripts = {}
        self.guard = threading.Lock()
        self.done = {"cycles": 0, "reads": 0, "longest_wait_ms": 0.0, "errors": 0, "first_error": ""}

    def call(self, text, keys, *arguments):
        script = self.scripts.setdefault(text, self.server.register_script(text))
        return script(keys=keys, args=arguments) == 1

    def attempt(self, token, reads):
        key, lease = self.words["key"], self.words["lease_ms"]
        library = self.words["library"]
        if library == "lock":
            return self.call(LOCK, [key, f"{key}:count:{token}"], token, lease)
        if library == "fair":
            return self.call(FAIR_LOCK, [key, f"{key}:queue"], token, lease, int(time.time()), REQUEST_TIMEOUT_S)
        return self.call(READ_LOCK if reads else WRITE_LOCK, [key], token, lease)

    def acquire(self, reads=False):
        token = f"lock_token:{uuid.uuid4()}"
        while not self.attempt(token, reads):
            time.sleep(PAUSE_S)
        return token

    def release(self, token, reads=False):
        key, library = self.words["key"], self.words["library"]
        if library == "lock":
            released = self.call(UNLOCK, [key, f"{key}:count:{token}"], token)
        elif library == "fair":
            released = self.call(FAIR_UNLOCK, [key], token)
        else:
            released = self.call(READ_UNLOCK if reads else WRITE_UNLOCK, [key], token)
        if not released:
            raise redis.RedisError("not released: the lock was not held any more")

    def number(self):
        with open(self.words["file"]) as file:
            return int(file.read())

    def section(self, reads):
        before = self.number()
        time.sleep(int(self.words["section_us"]) / 1e6)
        if reads:
            if self.number() != before:
                raise redis.RedisError("a writer came in while this one read")
            return
        with open(self.words["file"], "w") as file:
            file.write(str(before + 1))

    def work(self, end):
        cycle = 0
        while time.monotonic() < end:
            cycle += 1
            reads = self.words["library"] == "rw" and cycle % 4 != 0
            asked = time.monotonic()
            try:
                token = self.acquire(reads)
                waited = (time.monotonic() - asked) * 1e3
                self.section(reads)
                with self.guard:
                    self.done["cycles"] += 1
                    self.done["reads"] += reads
                    self.done["longest_wait_ms"] = max(self.done["longest_wait_ms"], waited)
                self.release(token, reads)
            except redis.RedisError as failed:
                with self.guard:
                    self.done["errors"] += 1
                    self.done["first_error"] = self.done["first_error"] or str(failed)

    def run(self, seconds):
        self.done |= {"cycles": 0, "reads": 0, "longest_wait_ms": 0.0, "errors": 0, "first_error": ""}
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
        token = worker.acquire()  # "hold" and "once"
        print("acquired", flush=True)
        if command == "once":
            worker.release(token)
            print("released", flush=True)


main()
