// R07: locks shared with programs that use the plain form: a string key, the owner's id, a lease in milliseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "script/rw/foreign_rw.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::interop_test {
namespace {

using namespace std::chrono_literals;

// The two scripts of that protocol, as such programs have them.
const std::string foreign_lock = R"(
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    return 'OK'
end
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
)";
const std::string foreign_unlock = R"(
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
)";

class Interop : public ::testing::Test {
protected:
    bool foreign_acquires(const std::string& id) {
        return server.call({"EVAL", foreign_lock, "1", "stock", id, "60000"}).text == "OK";
    }
    bool foreign_releases(const std::string& id) {
        return server.call({"EVAL", foreign_unlock, "1", "stock", id}).integer == 1;
    }

    redis_server server;
    client subject{server.url()};
    mutex lock{subject, "stock", {.keys = keys::raw}};
};

// R07
TEST_F(Interop, TheForeignProgramIsKeptOutByOurHold) {
    lease held = lock.acquire();
    EXPECT_EQ(server.call({"TYPE", "stock"}).text, "string");
    EXPECT_EQ(server.call({"GET", "stock"}).text, held.id());
    EXPECT_FALSE(foreign_acquires("stranger"));
    EXPECT_FALSE(foreign_releases("stranger"));
    EXPECT_EQ(server.call({"GET", "stock"}).text, held.id());
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(foreign_acquires("stranger"));
}

// R07
TEST_F(Interop, WeAreKeptOutByTheForeignProgramsHold) {
    ASSERT_TRUE(foreign_acquires("stranger"));
    EXPECT_FALSE(lock.try_acquire());
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.try_acquire_for(100ms));
    EXPECT_EQ(server.call({"GET", "stock"}).text, "stranger");
    // The line is left in the background: until then the lock may pass through the hands of who gave up.
    EXPECT_TRUE(eventually([&] { return server.call({"EXISTS", "{stock}:queue"}).integer == 0; }));
    EXPECT_TRUE(foreign_releases("stranger"));
    EXPECT_TRUE(lock.try_acquire());
}

// R07: a foreign program tells nobody when it releases, so the first waiter polls.
TEST_F(Interop, AWaiterGetsWhatAForeignProgramLetsGo) {
    ASSERT_TRUE(foreign_acquires("stranger"));
    lease got;
    std::thread waiting([&] { got = lock.acquire(); });
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "{stock}:queue"}).integer == 1; }));
    EXPECT_TRUE(foreign_releases("stranger"));
    waiting.join();
    EXPECT_EQ(server.call({"GET", "stock"}).text, got.id());
    EXPECT_FALSE(foreign_acquires("stranger"));
}

// go-redislock's Lock and Fair of the name `stock` are at the key `{stock}`, and so is the raw lock of that name.
class InteropInBraces : public ::testing::Test {
protected:
    bool foreign_acquires() {
        return server.call({"EVAL", foreign_lock, "1", "{stock}", "lock_token:a", "60000"}).text == "OK";
    }
    bool foreign_releases() {
        return server.call({"EVAL", foreign_unlock, "1", "{stock}", "lock_token:a"}).integer == 1;
    }
    // One attempt of the fair lock, which keeps who waits in the same key as we, by seconds and so in front of ours. It
    // gives up, and its request timeout is the queue's expiry from now on.
    void foreign_waits(const char* timeout_ms) {
        server.call({"ZADD", "{stock}:queue", "1794994026", "lock_token:b"});
        server.call({"PEXPIRE", "{stock}:queue", timeout_ms});
    }
    bool is_waited_for() { return server.call({"HLEN", "{stock}:waiters"}).integer > 0; }

    redis_server server;
    client subject{server.url()};
    mutex lock{subject, "{stock}", {.keys = keys::raw}};
};

TEST_F(InteropInBraces, ExcludesGoRedislocksLock) {
    lease held = lock.acquire();
    EXPECT_EQ(server.call({"GET", "{stock}"}).text, held.id());
    EXPECT_FALSE(foreign_acquires());
    EXPECT_FALSE(held.release());
    ASSERT_TRUE(foreign_acquires());
    EXPECT_FALSE(lock.try_acquire());
}

TEST_F(InteropInBraces, WaitersOfAForeignProgramInTheQueueDoNotKeepTheFirstOfOursFromLooking) {
    ASSERT_TRUE(foreign_acquires());
    foreign_waits("60000");
    lease got;
    std::thread waiting([&] { got = lock.acquire(); });
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "{stock}:queue"}).integer == 2; }));
    const auto let_go = std::chrono::steady_clock::now();
    EXPECT_TRUE(foreign_releases());
    waiting.join();
    EXPECT_LT(std::chrono::steady_clock::now() - let_go, 3s) << "and not the 10 s of those further back";
}

// R10
TEST_F(InteropInBraces, AReleaseHandsOverThoughTheFairLockCutTheQueuesExpiry) {
    lease held = lock.acquire();
    lease got;
    std::thread waiting([&] { got = lock.acquire(); });
    EXPECT_TRUE(eventually([&] { return is_waited_for(); }));
    foreign_waits("10");
    EXPECT_TRUE(eventually([&] { return server.call({"EXISTS", "{stock}:queue"}).integer == 0; }));
    const auto released = std::chrono::steady_clock::now();
    EXPECT_FALSE(held.release());
    waiting.join();
    EXPECT_LT(std::chrono::steady_clock::now() - released, 3s) << "and not the 10 s until its next poll";
}

TEST_F(Interop, AForeignHoldWithoutAnEndIsWaitedForToo) {
    server.call({"SET", "stock", "stranger"});
    lease got;
    std::thread waiting([&] { got = lock.acquire(); });
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "{stock}:queue"}).integer == 1; }));
    server.call({"DEL", "stock"});
    waiting.join();
    EXPECT_TRUE(got);
}

// R07, R60: a hand-over never frees the key, so the queue has to yield: programs that poll would be kept out for ever.
class InteropUnderLoad : public ::testing::Test {
protected:
    // Four clients that are never done, until `enough`.
    template <typename Lock>
    void expect_a_turn_beside_four(const std::function<bool()>& foreign_cycle) {
        std::atomic<bool> enough = false;
        std::vector<std::jthread> busy;
        for (int i = 0; i < 4; ++i) {
            busy.emplace_back([&] {
                client mine{server.url()};
                Lock lock{mine, "stock", {.keys = keys::raw}};
                while (!enough) {
                    const std::scoped_lock held(lock);
                    std::this_thread::sleep_for(1ms);
                }
            });
        }
        EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "{stock}:queue"}).integer >= 2; }));
        for (int cycle = 0; cycle < 5; ++cycle) EXPECT_TRUE(eventually(foreign_cycle)) << "cycle " << cycle;
        enough = true;
    }

    redis_server server;
};

TEST_F(InteropUnderLoad, AProgramThatPollsGetsItsTurn) {
    expect_a_turn_beside_four<mutex>([&] {
        if (server.call({"SET", "stock", "stranger", "NX", "PX", "60000"}).text != "OK") return false;
        return server.call({"EVAL", foreign_unlock, "1", "stock", "stranger"}).integer == 1;
    });
}

TEST_F(InteropUnderLoad, AWriterThatPollsGetsItsTurn) {  // R33
    const auto foreign = [&](std::string_view chart) {
        return server.call({"EVAL", std::string{chart}, "1", "stock", "lock_token:1", "60000"}).integer == 1;
    };
    expect_a_turn_beside_four<shared_mutex>(
        [&] { return foreign(foreign_rw::lock_to_write) && foreign(foreign_rw::unlock_from_writing); });
}

// R33: a read-write lock shared with programs that know only the hash, as go-redislock has it: one expiry for all.
class InteropSharedMutex : public ::testing::Test {
protected:
    bool foreign(std::string_view chart, std::chrono::milliseconds ttl = 60s) {
        return server.call({"EVAL", std::string{chart}, "1", "stock", "lock_token:1", std::to_string(ttl.count())})
                   .integer == 1;
    }

    redis_server server;
    client subject{server.url()};
    shared_mutex lock{subject, "stock", {.keys = keys::raw}};
};

// Its reader's expiry is over before ours is renewed, and its writer comes and goes.
TEST_F(InteropSharedMutex, AReadHoldThatAForeignWriterMayHaveViolatedIsLost) {  // R33, R44
    for (const bool renews : {true, false}) {
        lease held = lock.acquire_shared();
        ASSERT_TRUE(foreign(foreign_rw::lock_to_read, 1ms));
        ASSERT_TRUE(eventually([&] { return foreign(foreign_rw::lock_to_write); }));
        ASSERT_TRUE(foreign(foreign_rw::unlock_from_writing));
        if (renews) {
            EXPECT_EQ(held.renew(), errc::lost);
            EXPECT_TRUE(held.lost().stop_requested());
            EXPECT_EQ(held.release(), errc::lost);
        } else {
            // Unless a renewal was just due, the release is the first to find out.
            EXPECT_THAT(held.release(), ::testing::AnyOf(errc::not_held, errc::lost));
        }
        EXPECT_TRUE(eventually([&] { return server.call({"EXISTS", "stock"}).integer == 0; }));
    }
}

// A Redisson lock under the same name.
TEST_F(InteropSharedMutex, AHashOfAnotherFormIsRefusedAndLeftAlone) {
    const std::string thread = "5f0c2f1e-8a51-4f6c-9d6f-0d6a1b3f6a10:47";
    server.call({"HSET", "stock", "mode", "write", thread + ":write", "1"});
    for (const bool reads : {true, false}) {
        try {
            reads ? lock.try_acquire_shared() : lock.try_acquire();
            ADD_FAILURE() << "not refused";
        } catch (const error& why) {
            EXPECT_EQ(why.condition(), errc::wrong_type);
            EXPECT_THAT(why.what(), ::testing::HasSubstr("looks like a Redisson lock"));
        }
    }
    EXPECT_EQ(server.call({"HLEN", "stock"}).integer, 2);
}

// redis-py's Lock, in a process of its own that does one step per line of its input.
const std::string python_locker = R"(
import sys, redis
lock = redis.Redis(port=int(sys.argv[1])).lock("stock", timeout=60, blocking=False)
for line in sys.stdin:
    step = line.strip()
    try:
        print(step, lock.acquire() if step == "acquire" else lock.release() or True, flush=True)
    except redis.exceptions.LockError as refused:
        print(step, type(refused).__name__, flush=True)
)";

class python_program {
public:
    explicit python_program(const redis_server& server)
        : process_{
              "/usr/bin/python3",
              {.arguments = {"-c", python_locker, std::to_string(server.port())}, .after_input = input_end::open}} {}

    std::string step(const std::string& name) {
        const std::size_t before = process_.output().size();
        process_.write_input(name + "\n");
        EXPECT_TRUE(eventually([&] { return process_.output().find('\n', before) != std::string::npos; }, 60s))
            << process_.errors();
        const std::string line = process_.output().substr(before);
        return line.substr(name.size() + 1, line.find('\n') - name.size() - 1);
    }

private:
    child_process process_;
};

// R07
TEST_F(Interop, RedisPyAndWeExcludeEachOther) {
    python_program python{server};
    {
        lease held = lock.acquire();
        EXPECT_EQ(python.step("acquire"), "False");
        EXPECT_EQ(server.call({"GET", "stock"}).text, held.id());
        EXPECT_FALSE(held.release());
    }
    EXPECT_EQ(python.step("acquire"), "True");
    EXPECT_FALSE(lock.try_acquire());
    lease got;
    std::thread waiting([&] { got = lock.acquire(); });
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "{stock}:queue"}).integer == 1; }));
    EXPECT_EQ(python.step("release"), "True");
    waiting.join();
    EXPECT_EQ(python.step("acquire"), "False");
}

}  // namespace
}  // namespace holdfast::testing::interop_test
