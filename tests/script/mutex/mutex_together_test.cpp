// mutex/acquire_all and mutex/release_all: several mutexes in one call.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_together_test {
namespace {

constexpr std::size_t most = 8;

class MutexTogether : private own_server, public script_fixture {
protected:
    struct held {
        std::string id;
        std::string token;
    };

    MutexTogether() : own_server{{}}, script_fixture{running.unix_path(), {"hf:{lock*"}} {}

    static std::string key(std::size_t number) { return "hf:{lock" + std::to_string(number) + "}"; }
    static std::string id(std::size_t number) { return "id" + std::to_string(number); }
    static std::vector<std::string> keys_of(std::size_t count) {
        std::vector<std::string> all;
        for (std::size_t i = 0; i < count; ++i) {
            for (const char* const side : {"", ":queue", ":waiters", ":fence"}) all.push_back(key(i) + side);
        }
        return all;
    }
    redis_reply acquire_all(std::size_t count, const std::string& floor = "0") {
        std::vector<std::string> arguments{text(static_cast<std::int64_t>(count)), text(hour)};
        for (std::size_t i = 0; i < count; ++i) {
            arguments.insert(arguments.end(), {id(i), text(minute), floor});
        }
        return run("mutex/acquire_all", keys_of(count), arguments);
    }
    redis_reply release_all(const std::vector<held>& all) {
        std::vector<std::string> arguments{text(static_cast<std::int64_t>(all.size()))};
        for (const held& one : all) arguments.insert(arguments.end(), {one.id, one.token});
        return run("mutex/release_all", keys_of(all.size()), arguments);
    }
    std::vector<held> hold_all(std::size_t count) {
        std::vector<held> all;
        const redis_reply reply = acquire_all(count);
        for (std::size_t i = 0; i < count; ++i) all.push_back({id(i), reply.elements.at(i).elements.at(1).text});
        return all;
    }
    void expect_refused(const redis_reply& reply, std::size_t count) {
        ASSERT_EQ(reply.elements.size(), count) << reply.text;
        for (const redis_reply& one : reply.elements) {
            ASSERT_EQ(one.elements.size(), 3U);
            EXPECT_EQ(one.elements[0].integer, 0);
        }
    }
};

TEST_F(MutexTogether, AcquiresFreeLocksWithLeaseAndTokenEach) {
    for (const std::size_t count : {std::size_t{2}, most}) {
        const redis_reply reply = acquire_all(count);
        ASSERT_EQ(reply.elements.size(), count) << reply.text;
        for (std::size_t i = 0; i < count; ++i) {
            EXPECT_EQ(value(key(i)), id(i));
            EXPECT_GT(left(key(i)), 0);
            EXPECT_LE(left(key(i)), minute);
            EXPECT_THAT(reply.elements[i], IsGranted(value(key(i) + ":fence")));
        }
        expect_all_keys_expire();
        must({"FLUSHALL"});
    }
}

TEST_F(MutexTogether, AcquiresNoneIfOneIsHeld) {
    for (std::size_t taken = 0; taken < 3; ++taken) {
        must({"SET", key(taken), "other", "PX", text(minute)});
        const keyspace before = everything();
        expect_refused(acquire_all(3), 3);
        EXPECT_EQ(everything(), before);
        must({"FLUSHALL"});
    }
}

// R10
TEST_F(MutexTogether, AcquiresNoneIfSomebodyWaitsForOne) {
    for (const char* const side : {":queue", ":waiters"}) {
        if (std::string{side} == ":queue") must({"ZADD", key(1) + side, "1", "other"});
        if (std::string{side} == ":waiters") must({"HSET", key(1) + side, "other", "1000 300 1 0 w c"});
        const keyspace before = everything();
        expect_refused(acquire_all(3), 3);
        EXPECT_EQ(everything(), before);
        must({"FLUSHALL"});
    }
}

// R05
TEST_F(MutexTogether, ASecondCopyOfTheCallChangesNothing) {
    const auto all = hold_all(3);
    const keyspace before = everything();
    expect_refused(acquire_all(3), 3);
    EXPECT_EQ(everything(), before);
    release_all(all);
    const keyspace free = everything();
    for (const redis_reply& one : release_all(all).elements) EXPECT_TRUE(one.is_nil());
    EXPECT_EQ(everything(), free);
}

// R45
TEST_F(MutexTogether, TokensGrowBeyondTheFenceAndTheCallersFloor) {
    const std::int64_t ahead = server_us() + minute * 1000;
    must({"SET", key(1) + ":fence", text(ahead), "PX", text(hour)});
    const redis_reply reply = acquire_all(2);
    EXPECT_EQ(reply.elements.at(1).elements.at(1).text, text(ahead + 1));
    must({"FLUSHALL"});
    const redis_reply lost = acquire_all(2, text(ahead));
    EXPECT_EQ(lost.elements.at(0).elements.at(1).text, text(ahead + 1));
}

TEST_F(MutexTogether, ReleasesGrantsThatNobodyWaitsFor) {
    for (const std::size_t count : {std::size_t{2}, most}) {
        const redis_reply reply = release_all(hold_all(count));
        ASSERT_EQ(reply.elements.size(), count);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(reply.elements[i].elements.size(), 2U);
            EXPECT_EQ(reply.elements[i].elements[0].integer, 1);
            EXPECT_EQ(must({"EXISTS", key(i)}).integer, 0);
            EXPECT_EQ(must({"EXISTS", key(i) + ":fence"}).integer, 1) << "tokens are remembered";
        }
    }
}

// R04, R06, R12
TEST_F(MutexTogether, LeavesAloneWhatIsNotSimpleAndReleasesTheRest) {
    auto all = hold_all(5);
    must({"ZADD", key(0) + ":queue", "1", "waiter"});
    must({"SET", key(1), "next holder", "PX", text(minute)});
    all[2].token = "1";  // an earlier grant of the same id
    must({"DEL", key(3)});
    must({"RPUSH", key(3), "a list"});
    const keyspace before = everything();
    const redis_reply reply = release_all(all);
    ASSERT_EQ(reply.elements.size(), 5U) << reply.text;
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(reply.elements[i].is_nil()) << i;
        EXPECT_EQ(everything()[key(i)], before.at(key(i))) << i;
    }
    EXPECT_EQ(reply.elements[4].elements.at(0).integer, 1);
    EXPECT_EQ(must({"EXISTS", key(4)}).integer, 0);
}

TEST_F(MutexTogether, AKeyOfAnotherTypeMeansThatNothingIsAcquired) {
    must({"RPUSH", key(1) + ":fence", "x"});
    const keyspace before = everything();
    EXPECT_THAT(acquire_all(3), IsError("WRONGTYPE"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexTogether, AFullServerGrantsNothing) {
    server_is_full();
    const keyspace before = everything();
    EXPECT_TRUE(acquire_all(3).is_error());
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexTogether, AFullServerReleases) {
    const auto all = hold_all(3);
    server_is_full();
    for (const redis_reply& one : release_all(all).elements) EXPECT_EQ(one.elements.at(0).integer, 1);
}

TEST_F(MutexTogether, ArgumentsThatMakeNoSenseChangeNothing) {
    const auto call = [&](const std::vector<std::string>& arguments) {
        return run("mutex/acquire_all", keys_of(2), arguments);
    };
    EXPECT_THAT(call({"0", text(hour)}), IsError("ERR holdfast"));
    EXPECT_THAT(call({"9", text(hour)}), IsError("ERR holdfast"));
    EXPECT_THAT(call({"2", "0", "a", text(minute), "0", "b", text(minute), "0"}), IsError("ERR holdfast"));
    EXPECT_THAT(call({"2", text(hour), "a", text(minute), "0", "b", "0", "0"}), IsError("ERR holdfast"));
    EXPECT_THAT(call({"2", text(hour), "a", text(minute), "0", "b", text(minute), "-1"}), IsError("ERR holdfast"));
    EXPECT_EQ(everything(), keyspace{});
}

}  // namespace
}  // namespace holdfast::testing::mutex_together_test
