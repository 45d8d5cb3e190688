// Node's locks as workers beside holdfast; ../run has the conversation. A thread is an asynchronous loop here.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(import.meta.url); // the types of redlock 5 hide its module from import
const words = Object.fromEntries(process.argv.slice(2).map((word) => {
  const at = word.indexOf("=");
  return [word.slice(0, at), word.slice(at + 1)];
}));
const [host, port] = words.address.split(":");
const server = new (require("ioredis"))({ host, port: Number(port) });
const lease = Number(words.lease_ms);
const retries = { retryCount: -1, retryDelay: 10, retryJitter: 5 };

// Each returns what releases the lock.
const acquire = {
  redlock4: () => {
    const Redlock = require("redlock4");
    const locks = new Redlock([server], retries);
    locks.on("clientError", () => {});
    return async () => {
      const lock = await locks.lock(words.key, lease);
      return () => lock.unlock();
    };
  },
  redlock5: () => {
    const Redlock = require("redlock5").default;
    const locks = new Redlock([server], retries);
    locks.on("error", () => {});
    return async () => {
      const lock = await locks.acquire([words.key], lease);
      return () => lock.release();
    };
  },
  "redis-semaphore": () => {
    const { Mutex } = require("redis-semaphore");
    return async () => {
      const name = words.key.replace(/^mutex:/, ""); // which it adds itself
      const lock = new Mutex(server, name, { lockTimeout: lease, acquireTimeout: 1e9, retryInterval: 10 });
      await lock.acquire();
      return () => lock.release();
    };
  },
}[words.library]();

async function increment(path, sectionMs) {
  const number = Number(readFileSync(path, "utf8"));
  await sleep(sectionMs);
  writeFileSync(path, String(number + 1));
}

async function work(end, done) {
  while (performance.now() < end) {
    const asked = performance.now();
    try {
      const release = await acquire();
      done.longest_wait_ms = Math.max(done.longest_wait_ms, performance.now() - asked);
      await increment(words.file, Number(words.section_us) / 1000);
      done.cycles += 1;
      await release();
    } catch (failed) {
      done.errors += 1;
      done.first_error ||= String(failed);
    }
  }
}

async function run(seconds) {
  const done = { cycles: 0, longest_wait_ms: 0, errors: 0, first_error: "" };
  const end = performance.now() + seconds * 1000;
  await Promise.all(Array.from({ length: Number(words.threads) }, () => work(end, done)));
  console.log(JSON.stringify(done));
}

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [command, seconds] = line.split(" ");
  if (command === "run") {
    await run(Number(seconds));
    continue;
  }
  const release = await acquire(); // "hold" and "once"
  console.log("acquired");
  if (command === "once") {
    await release();
    console.log("released");
  }
}
process.exit(0);
