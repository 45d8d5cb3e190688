// Who goes first where readers and writers wait for one read-write lock, and what a wake-up costs: R29, R30, R32, R33.
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "integration/shared_mutex/shared_mutex_fixture.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::shared_mutex_queue_test {
namespace {

class QueuedSharedMutex : public shared_mutex_fixture, public ::testing::WithParamInterface<prefer> {
protected:
    /// Waits at position `place`; writes or reads down its name when it is in, and leaves when it is told to.
    class waiter {
    public:
        waiter(shared_mutex& lock, mode kind)
            : held_(in_background(
                  [&lock, kind] { return kind == mode::shared ? lock.acquire_shared() : lock.acquire(); })) {}
        bool is_in() { return is_ready(held_); }
        [[nodiscard]] bool comes_in() { return is_ready(held_, an_age); }
        void leave() { result_of(held_).release(); }

    private:
        std::future<lease> held_;
    };

    waiter in_queue(shared_mutex& by, mode kind, std::int64_t place) {
        waiter started{by, kind};
        EXPECT_TRUE(queue_has(place));
        return started;
    }
};

// R30: the default
TEST_F(QueuedSharedMutex, ByArrivalNobodyIsOvertaken) {
    lease first = lock.acquire();
    waiter reader = in_queue(theirs, mode::shared, 1);
    waiter writer = in_queue(lock, mode::exclusive, 2);
    waiter late_reader = in_queue(theirs, mode::shared, 3);
    first.release();
    ASSERT_TRUE(reader.comes_in());
    EXPECT_FALSE(lock.try_acquire_shared()) << "a writer waits";
    ASSERT_TRUE(queue_has(2));
    reader.leave();
    ASSERT_TRUE(writer.comes_in());
    EXPECT_FALSE(late_reader.is_in());
    writer.leave();
    ASSERT_TRUE(late_reader.comes_in());
    late_reader.leave();
}

// R30, as in 000
TEST_F(QueuedSharedMutex, PreferringReadersAWriterComesInWhenNoReaderIsLeft) {
    shared_mutex mine{subject, "catalog", {.prefer = prefer::readers}};
    shared_mutex others{other, "catalog", {.prefer = prefer::readers}};
    lease reading = mine.acquire_shared();
    waiter writer = in_queue(others, mode::exclusive, 1);
    lease another = mine.try_acquire_shared();
    EXPECT_TRUE(another) << "a writer who waits keeps no reader out";
    reading.release();
    EXPECT_FALSE(writer.is_in());
    another.release();
    ASSERT_TRUE(writer.comes_in());
    waiter second_writer = in_queue(mine, mode::exclusive, 1);
    waiter reader = in_queue(others, mode::shared, 2);
    writer.leave();
    ASSERT_TRUE(reader.comes_in());
    EXPECT_FALSE(second_writer.is_in());
    reader.leave();
    ASSERT_TRUE(second_writer.comes_in());
    second_writer.leave();
}

// R29, R30
TEST_F(QueuedSharedMutex, PreferringWritersNoNewReaderComesInWhileAWriterWaits) {
    shared_mutex mine{subject, "catalog", {.prefer = prefer::writers}};
    shared_mutex others{other, "catalog", {.prefer = prefer::writers}};
    lease first = mine.acquire();
    waiter reader = in_queue(others, mode::shared, 1);
    waiter writer = in_queue(others, mode::exclusive, 2);
    waiter second_writer = in_queue(mine, mode::exclusive, 3);
    first.release();
    ASSERT_TRUE(writer.comes_in());
    EXPECT_FALSE(reader.is_in()) << "although it was there before";
    writer.leave();
    ASSERT_TRUE(second_writer.comes_in());
    EXPECT_FALSE(reader.is_in());
    second_writer.leave();
    ASSERT_TRUE(reader.comes_in());
    waiter third_writer = in_queue(mine, mode::exclusive, 1);
    refusal why;
    EXPECT_FALSE(others.try_acquire_shared({.why_not = &why}));
    EXPECT_EQ(why.code, errc::reserved);
    reader.leave();
    ASSERT_TRUE(third_writer.comes_in());
    third_writer.leave();
}

// R29: 004 deadlocks there
TEST_P(QueuedSharedMutex, AReaderThatReEntersIsNotBlockedByAWaitingWriter) {
    shared_mutex mine{subject, "catalog", {.prefer = GetParam()}};
    shared_mutex others{other, "catalog", {.prefer = GetParam()}};
    mine.lock_shared();
    waiter writer = in_queue(others, mode::exclusive, 1);
    mine.lock_shared();
    EXPECT_TRUE(mine.try_lock_shared());
    EXPECT_FALSE(writer.is_in());
    for (int i = 0; i < 3; ++i) mine.unlock_shared();
    ASSERT_TRUE(writer.comes_in());
    writer.leave();
}

// With a fixed lease re-entering asks the server to make it full again: that is not held up either.
TEST_P(QueuedSharedMutex, AReaderWithAFixedLeaseReEntersBesideAWaitingWriter) {
    shared_mutex mine{subject, "catalog", {.lease = 20s, .renew = false, .prefer = GetParam()}};
    shared_mutex others{other, "catalog", {.prefer = GetParam()}};
    const owner job;
    lease outer = mine.acquire_shared({.owner = job});
    waiter writer = in_queue(others, mode::exclusive, 1);
    lease inner = mine.acquire_shared({.owner = job});
    EXPECT_FALSE(inner.renew());
    inner.release();
    outer.release();
    ASSERT_TRUE(writer.comes_in());
    writer.leave();
}

// R13, R29
TEST_F(QueuedSharedMutex, AWriterThatGivesUpLetsInTheReadersBehindIt) {
    for (const prefer chosen : {prefer::arrival, prefer::writers}) {
        shared_mutex mine{subject, "catalog", {.prefer = chosen}};
        shared_mutex others{other, "catalog", {.prefer = chosen}};
        const lease reading = mine.acquire_shared();
        std::stop_source stop;
        auto writer = in_background([&] { return condition_of([&] { others.acquire({.stop = stop.get_token()}); }); });
        ASSERT_TRUE(queue_has(1));
        waiter behind = in_queue(mine, mode::shared, 2);
        EXPECT_FALSE(behind.is_in());
        stop.request_stop();
        EXPECT_EQ(result_of(writer), errc::cancelled);
        ASSERT_TRUE(behind.comes_in());
        behind.leave();
    }
}

// R29: the mark of a writer whose process is gone holds nobody back
TEST_P(QueuedSharedMutex, AWaitingWriterThatIsGoneHoldsNobodyBack) {
    tcp_proxy link{server.port()};
    client far{link.url()};
    shared_mutex mine{subject, "catalog", {.prefer = GetParam()}};
    shared_mutex distant{far, "catalog", {.prefer = GetParam()}};
    const lease reading = mine.acquire_shared();
    std::stop_source stop;
    auto writer = in_background([&] { return condition_of([&] { distant.acquire({.stop = stop.get_token()}); }); });
    ASSERT_TRUE(queue_has(1));
    EXPECT_EQ(static_cast<bool>(mine.try_acquire_shared()), GetParam() == prefer::readers);
    link.refuse();
    link.cut();
    EXPECT_TRUE(eventually([&] { return static_cast<bool>(mine.try_acquire_shared()); }));
    stop.request_stop();
    EXPECT_EQ(result_of(writer), errc::cancelled);
}

std::string name_of(const ::testing::TestParamInfo<prefer>& info) {
    switch (info.param) {
        case prefer::arrival:
            return "arrival";
        case prefer::readers:
            return "readers";
        case prefer::writers:
            return "writers";
    }
    return "unknown";
}

INSTANTIATE_TEST_SUITE_P(EveryPreference, QueuedSharedMutex,
                         ::testing::Values(prefer::arrival, prefer::readers, prefer::writers), name_of);

// R32
TEST_F(QueuedSharedMutex, AWriteReleaseWakesAllReadersByOneCommandAndOnePushPerProcess) {
    warm_up();
    lease writing = lock.acquire();
    std::vector<waiter> readers_in_line;
    for (std::int64_t i = 0; i < 6; ++i)
        readers_in_line.push_back(in_queue(i % 2 == 0 ? lock : theirs, mode::shared, i + 1));
    server.reset_stats();
    writing.release();
    for (waiter& each : readers_in_line) ASSERT_TRUE(each.comes_in());
    EXPECT_EQ(script_calls(), 1);
    EXPECT_EQ(server.command_calls("publish"), 2);
    EXPECT_EQ(readers(), 6);
    for (waiter& each : readers_in_line) each.leave();
}

// R33: the hash of 000, as other programs write it
TEST_F(QueuedSharedMutex, RespectsAReaderOfAnotherProgramAndComesInWhenItHasLeft) {
    shared_mutex raw{subject, "shelf", {.keys = keys::raw}};
    server.call({"HSET", "shelf", "mode", "read", "rcount", "1", "r:go-1", "1"});
    server.call({"PEXPIRE", "shelf", "60000"});
    refusal why;
    EXPECT_FALSE(raw.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.code, errc::read_held);
    EXPECT_EQ(why.holder, "go-1");
    EXPECT_GT(why.holder_left.value_or(0ms), 0ms);
    lease reading = raw.acquire_shared();
    EXPECT_EQ(server.call({"HGET", "shelf", "rcount"}).text, "2");
    EXPECT_FALSE(reading.try_upgrade());
    auto upgrading = in_background([&] { return reading.upgrade(); });
    EXPECT_FALSE(is_ready(upgrading, 20ms));
    server.call({"HDEL", "shelf", "r:go-1"});
    server.call({"HINCRBY", "shelf", "rcount", "-1"});
    const lease writing = result_of(upgrading);
    EXPECT_EQ(server.call({"HGET", "shelf", "writer"}).text, writing.id());
    EXPECT_EQ(server.call({"HGET", "shelf", "rcount"}).text, "1");
}

TEST_F(QueuedSharedMutex, ReadersAndWritersNeverMeet) {
    std::atomic<int> reading = 0;
    std::atomic<int> writing = 0;
    std::atomic<int> together = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
        threads.emplace_back([&, t] {
            shared_mutex& mine = t % 2 == 0 ? lock : theirs;
            for (int i = 0; i < 30; ++i) {
                if ((t + i) % 3 == 0) {
                    const std::lock_guard guard{mine};
                    if (++writing != 1 || reading != 0) ++together;
                    --writing;
                } else {
                    const std::shared_lock guard{mine};
                    ++reading;
                    if (writing != 0) ++together;
                    --reading;
                }
            }
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(together, 0);
}

}  // namespace
}  // namespace holdfast::testing::shared_mutex_queue_test
