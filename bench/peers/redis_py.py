#!/usr/bin/python3
"""redis-py's Lock as a contestant, in threads or, with face=async, in tasks; see contestants/contestant.hpp for the
conversation.

It has no way to be woken: a waiter sleeps and tries again, here every 10 ms (its default is 100).
"""

import asyncio
import json
import resource
import sys
import threading
import time

import redis
import redis.asyncio


def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e3


def processor_time_us():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1e6


class Caller:
    def __init__(self, chosen, number):
        name = "bench" if chosen.get("names") == "one" else f"bench:{chosen.get('process', 0)}:{number}"
        self.section, self.rest = int(chosen.get("section_us", 0)) / 1e6, int(chosen.get("rest_us", 0)) / 1e6
        self.lock = redis.Redis.from_url(chosen["url"]).lock(name, timeout=30, sleep=0.01, thread_local=False)
        for _ in range(5):
            self.cycle(float("inf"))
        self.forget()

    def forget(self):
        self.taken, self.entered, self.left, self.late = [], [], [], 0

    def cycle(self, end):
        """False when time was up."""
        if not hasattr(self, "taken"):
            self.forget()
        asked = now_us()
        self.lock.acquire()
        inside = now_us()
        if inside < end and self.section and end != float("inf"):
            time.sleep(self.section)
        leaving = now_us()
        self.lock.release()
        outside = now_us()
        if inside >= end:
            self.late += 1
            return False
        self.taken.append(inside - asked + outside - leaving)
        self.entered.append(inside)
        self.left.append(leaving)
        return True

    def work(self, start, seconds):
        self.forget()
        start.wait()
        end = now_us() + seconds * 1e6
        while now_us() < end and self.cycle(end):
            if self.rest:
                time.sleep(self.rest)


class Task:
    """A caller without a thread. All of a process share a client, which has a connection for each lock under way."""

    def __init__(self, chosen, number, client):
        self.lock = client.lock(f"bench:{chosen.get('process', 0)}:{number}", timeout=30, sleep=0.01, thread_local=False)
        self.taken, self.late = [], 0

    async def work(self, end):
        self.taken, self.late = [], 0
        while True:
            asked = now_us()
            if asked >= end:
                return
            await self.lock.acquire()
            await self.lock.release()
            if now_us() >= end:
                self.late += 1
                return
            self.taken.append(now_us() - asked)


async def run_tasks(tasks, seconds):
    cpu, began = processor_time_us(), now_us()
    await asyncio.gather(*(each.work(began + seconds * 1e6) for each in tasks))
    report(tasks, began, cpu, seconds)


def run(callers, seconds, with_visits):
    start = threading.Barrier(len(callers) + 1)
    threads = [threading.Thread(target=each.work, args=(start, seconds)) for each in callers]
    for thread in threads:
        thread.start()
    cpu, began = processor_time_us(), now_us()
    start.wait()
    for thread in threads:
        thread.join()
    report(callers, began, cpu, seconds, with_visits)


def report(callers, began, cpu, seconds, with_visits=False):
    taken = sorted(each for caller in callers for each in caller.taken)
    result = {"cycles": len(taken), "late_cycles": sum(each.late for each in callers),
              "elapsed_us": min(now_us() - began, seconds * 1e6), "cpu_us": processor_time_us() - cpu,
              "shares": [len(each.taken) for each in callers]}
    if taken:
        result |= {"p50_us": taken[len(taken) // 2], "p99_us": taken[len(taken) * 99 // 100]}
    if with_visits:
        result |= {"entered_us": [at for each in callers for at in each.entered],
                   "left_us": [at for each in callers for at in each.left],
                   "visitor": [i for i, each in enumerate(callers) for _ in each.entered]}
    print(json.dumps(result), flush=True)


async def main_of_tasks(chosen):
    client = redis.asyncio.Redis.from_url(chosen["url"])
    tasks = [Task(chosen, number, client) for number in range(int(chosen.get("callers", 1)))]
    await asyncio.gather(*(each.work(now_us() + 2e5) for each in tasks))  # connected and warm
    print("ready", flush=True)
    for line in sys.stdin:
        await run_tasks(tasks, float(line.split()[1]))


def main():
    chosen = dict(word.split("=", 1) for word in sys.argv[1:])
    if chosen.get("face") == "async":
        return asyncio.run(main_of_tasks(chosen))
    callers = [Caller(chosen, number) for number in range(int(chosen.get("callers", 1)))]
    print("ready", flush=True)
    for line in sys.stdin:
        run(callers, float(line.split()[1]), chosen.get("visits") == "1")


main()
