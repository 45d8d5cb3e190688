// A server, and the look at what is left on it when all is over.
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

/// How long a test that may run for any time does: HOLDFAST_CHAOS_SECONDS, or else this.
inline std::string seconds_to_run(const std::string& otherwise) {
    const char* const wanted = std::getenv("HOLDFAST_CHAOS_SECONDS");
    return wanted != nullptr ? wanted : otherwise;
}

/// Every test ends with a keyspace in which there is nothing but fencing marks and clients' cards, all of
/// them with an expiry. A lock whose holder was killed may need its lease's time to get there.
class chaos_fixture : public ::testing::Test {
protected:
    explicit chaos_fixture(server_options options = {}) : server{std::move(options)} {}

    void TearDown() override {
        EXPECT_TRUE(eventually([this] { return leftovers(server).empty(); }, std::chrono::seconds{40}))
            << "left behind:" << leftovers(server);
    }

    /// For crowds on a slow machine: who gave up a link would ask again, and that is counted.
    std::string patient_url() const { return server.url() + "?timeout=20s"; }

    std::size_t waiters_of(const std::string& name) {
        return static_cast<std::size_t>(server.call({"ZCARD", "hf:{" + name + "}:queue"}).integer);
    }

    [[nodiscard]] bool waits_in_line(const std::string& name, std::size_t so_many) {
        return eventually([&] { return waiters_of(name) == so_many; }, an_age);
    }

    redis_server server;
};

}  // namespace holdfast::testing
