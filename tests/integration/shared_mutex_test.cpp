// The read-write lock on a real server, through the library's own face.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <shared_mutex>
#include <thread>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing {
namespace {

using namespace std::chrono_literals;

const std::string key = "hf:{catalog}";

class SharedMutex : public ::testing::Test {
protected:
    std::string field(const std::string& name) { return server.call({"HGET", key, name}).text; }
    bool exists() { return server.call({"EXISTS", key}).integer == 1; }
    std::int64_t script_calls() { return server.command_calls("evalsha") + server.command_calls("eval"); }

    redis_server server;
    client subject{server.url()};
    client other{server.url()};
    shared_mutex lock{subject, "catalog"};
    shared_mutex theirs{other, "catalog"};
};

// R20, R21, R23
TEST_F(SharedMutex, ManyReadTogether) {
    lease one = lock.acquire_shared();
    lease two = theirs.acquire_shared();
    EXPECT_EQ(field("mode"), "read");
    EXPECT_EQ(field("rcount"), "2");
    EXPECT_EQ(field("r:" + one.id()), "1");
    EXPECT_EQ(one.mode(), mode::shared);
    afterwards left;
    EXPECT_FALSE(one.release(left));
    EXPECT_EQ(left.holders, 1U);
    EXPECT_EQ(field("rcount"), "1");
    EXPECT_FALSE(two.release(left));
    EXPECT_EQ(left.holders, 0U);
    EXPECT_FALSE(exists());
}

// R22, R31
TEST_F(SharedMutex, OneWritesAlone) {
    lease writing = lock.acquire();
    EXPECT_EQ(field("mode"), "write");
    EXPECT_EQ(field("writer"), writing.id());
    EXPECT_EQ(field("wcount"), "1");
    refusal why;
    EXPECT_FALSE(theirs.try_acquire_shared({.why_not = &why}));
    EXPECT_EQ(why.code, errc::write_held);
    EXPECT_EQ(why.holder, writing.id());
    EXPECT_GT(why.holder_left.value(), 0ms);
    EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.code, errc::write_held);
    writing.release();
    lease reading = theirs.acquire_shared();
    EXPECT_FALSE(lock.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.code, errc::read_held);
}

// R22, R26, R27
TEST_F(SharedMutex, UpgradesAndDowngrades) {
    lease reading = lock.acquire_shared();
    const auto read_token = reading.token();
    const auto before = script_calls();
    lease writing = reading.upgrade();
    EXPECT_EQ(script_calls() - before, 1);
    EXPECT_EQ(field("mode"), "write");
    EXPECT_EQ(field("writer"), reading.id());
    EXPECT_EQ(field("rcount"), "1");
    EXPECT_GT(writing.token(), read_token);
    EXPECT_EQ(writing.mode(), mode::exclusive);
    lease again = writing.downgrade();
    EXPECT_EQ(script_calls() - before, 2);
    EXPECT_FALSE(writing);
    EXPECT_EQ(field("mode"), "read");
    EXPECT_TRUE(theirs.try_acquire_shared());
    EXPECT_FALSE(again.release());
    EXPECT_TRUE(exists()) << "the first lease still reads";
    EXPECT_FALSE(reading.release());
    EXPECT_FALSE(exists());
}

}  // namespace
}  // namespace holdfast::testing
