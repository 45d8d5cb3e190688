// A server, and a check of the keys that are left on it at the end.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include "chaos/worker_process.hpp"
#include "support/eventually.hpp"
#include "support/leftovers.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing {

/// The duration of a test of open length: HOLDFAST_CHAOS_SECONDS, otherwise this.
inline std::string seconds_to_run(const std::string& otherwise) {
    const char* const wanted = std::getenv("HOLDFAST_CHAOS_SECONDS");
    return wanted != nullptr ? wanted : otherwise;
}

/// Every test ends with a keyspace of only fencing marks and clients' cards, all with an expiry. A lock whose holder
/// was killed may need its lease to end first.
class chaos_fixture : public ::testing::Test {
protected:
    explicit chaos_fixture(server_options options = {}) : server{std::move(options)} {}

    void TearDown() override {
        EXPECT_TRUE(eventually([this] { return leftovers(server).empty(); }, std::chrono::seconds{40}))
            << "left behind:" << leftovers(server);
    }

    /// For many clients on a slow machine: a client that gives up a link asks again, and tests count that.
    std::string patient_url() const { return server.url() + "?timeout=20s"; }

    std::size_t waiters_of(const std::string& name) {
        return static_cast<std::size_t>(server.call({"ZCARD", "hf:{" + name + "}:queue"}).integer);
    }

    [[nodiscard]] bool queue_reaches(const std::string& name, std::size_t waiters) {
        return eventually([&] { return waiters_of(name) == waiters; }, an_age);
    }

    redis_server server;
};

}  // namespace holdfast::testing
