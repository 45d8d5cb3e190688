// redlock and redis-semaphore, both on ioredis, as contestants; see contestants/contestant.hpp for the conversation.
//
// Neither can be woken: a waiter sleeps and tries again, here every 10 ms (redlock's default is 200 with 100 of jitter,
// redis-semaphore's is 10). With several callers ioredis pipelines by itself. Nothing is renewed: no section is long.

import { createInterface } from "node:readline";
import Redis from "ioredis";
import { Mutex, RedlockMutex } from "redis-semaphore";
import redlock from "redlock";

const Redlock = redlock.default ?? redlock;
const chosen = Object.fromEntries(process.argv.slice(2).map((word) => word.split(/=(.*)/s).slice(0, 2)));
const count = Number(chosen.callers ?? 1);

const links = chosen.url.split(",").map(
  (url) => new Redis(url.replace(/^unix:\/\//, ""), { enableAutoPipelining: count > 1 }));

const now = () => Number(process.hrtime.bigint()) / 1e3;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const nameOf = (i) => (chosen.names === "one" ? "bench" : `bench:${chosen.process ?? 0}:${i}`);

// Each returns what takes the lock and answers with what gives it back.
const makers = {
  redlock(name) {
    const lock = new Redlock(links, { retryCount: -1, retryDelay: 10, retryJitter: 5 });
    return async () => {
      const held = await lock.acquire([name], 30000);
      return () => held.release();
    };
  },
  "redis-semaphore"(name) {
    const terms = { lockTimeout: 30000, acquireTimeout: 600000, retryInterval: 10, refreshInterval: 0 };
    const lock = links.length > 1 ? new RedlockMutex(links, name, terms) : new Mutex(links[0], name, terms);
    return async () => {
      await lock.acquire();
      return () => lock.release();
    };
  },
};

class Caller {
  constructor(name) {
    this.acquire = makers[chosen.library](name);
    this.forget();
  }

  forget() {
    Object.assign(this, { taken: [], entered: [], left: [], late: 0 });
  }

  async work(end, section, rest) {
    this.forget();
    while (now() < end) {
      const asked = now();
      const release = await this.acquire();
      const inside = now();
      if (inside < end && section) await pause(section);
      const leaving = now();
      await release();
      const outside = now();
      if (inside >= end) {
        this.late += 1;
        break;
      }
      this.taken.push(inside - asked + outside - leaving);
      this.entered.push(inside);
      this.left.push(leaving);
      if (rest) await pause(rest);
    }
  }
}

async function run(callers, seconds) {
  const section = Number(chosen.section_us ?? 0) / 1000;
  const rest = Number(chosen.rest_us ?? 0) / 1000;
  const cpu = process.cpuUsage();
  const start = now();
  await Promise.all(callers.map((each) => each.work(start + seconds * 1e6, section, rest)));
  const used = process.cpuUsage(cpu);
  const taken = callers.flatMap((each) => each.taken).sort((a, b) => a - b);
  const result = {
    cycles: taken.length,
    late_cycles: callers.reduce((sum, each) => sum + each.late, 0),
    elapsed_us: Math.min(now() - start, seconds * 1e6),
    cpu_us: used.user + used.system,
    shares: callers.map((each) => each.taken.length),
  };
  if (taken.length > 0) {
    result.p50_us = taken[Math.floor(taken.length / 2)];
    result.p99_us = taken[Math.floor(taken.length * 0.99)];
  }
  if (chosen.visits === "1") {
    result.entered_us = callers.flatMap((each) => each.entered);
    result.left_us = callers.flatMap((each) => each.left);
    result.visitor = callers.flatMap((each, i) => each.entered.map(() => i));
  }
  return result;
}

const callers = Array.from({ length: count }, (_, i) => new Caller(nameOf(i)));
await new Caller(`warm:${chosen.process ?? 0}`).work(now() + 5e5, 0, 0); // the compiler's warm-up
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await run(callers, Number(line.split(" ")[1]))));
}
for (const link of links) link.disconnect();
