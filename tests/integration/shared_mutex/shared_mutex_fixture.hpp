// A server and two clients of it, each with its face of one read-write lock, and looks at what the server has.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <future>
#include <string>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/in_background.hpp"
#include "support/leftovers.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing {

using namespace std::chrono_literals;

/// Every test ends with a server on which nothing is left.
class shared_mutex_fixture : public ::testing::Test {
protected:
    explicit shared_mutex_fixture(server_options options = {}) : server{std::move(options)} {}

    void TearDown() override {
        EXPECT_TRUE(eventually([this] { return leftovers(server).empty(); }, an_age)) << leftovers(server);
    }

    std::string field(const std::string& name) { return server.call({"HGET", key, name}).text; }
    bool exists(const std::string& what) { return server.call({"EXISTS", what}).integer == 1; }
    bool free() { return !exists(key); }
    std::int64_t readers() {
        const std::string count = field("rcount");
        return count.empty() ? 0 : std::stoll(count);
    }
    [[nodiscard]] bool queue_has(std::int64_t waiters) {
        return eventually([&] { return server.call({"ZCARD", key + ":queue"}).integer == waiters; });
    }
    std::int64_t script_calls() { return server.command_calls("evalsha") + server.command_calls("eval"); }

    /// After this the server has run all that both clients have sent: the answer comes behind it, on the same link.
    void catch_up() {
        subject.ping();
        other.ping();
    }

    /// After this the server knows every script, and both clients are connected and subscribed.
    void warm_up() {
        for (client* const each : {&subject, &other}) {
            shared_mutex warm{*each, "warm"};
            lease reading = warm.acquire_shared();
            EXPECT_FALSE(reading.renew());
            lease writing = reading.upgrade();
            writing.downgrade();
            reading.release();
        }
    }

    const std::string key = "hf:{catalog}";
    redis_server server;
    client subject{server.url()};
    client other{server.url()};
    shared_mutex lock{subject, "catalog"};
    shared_mutex theirs{other, "catalog"};
};

template <typename Result>
[[nodiscard]] bool is_ready(const std::future<Result>& result, std::chrono::milliseconds limit = 0ms) {
    return result.wait_for(limit) == std::future_status::ready;
}

/// What it comes to; a test that waits for it in vain fails rather than hangs.
template <typename Result>
Result result_of(std::future<Result>& result) {
    if (!is_ready(result, an_age)) {
        ADD_FAILURE() << "it never ended";
        std::abort();  // whoever it waits for would wait for ever
    }
    return result.get();
}

inline bool is_lost(const lease& held) {
    return eventually([&] { return held.lost().stop_requested(); });
}

}  // namespace holdfast::testing
