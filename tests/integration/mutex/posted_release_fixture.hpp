// A server for tests of releases that nobody waits for: unlock() and the end of a lease.
//
// The leases are so long that no lock here is free because its time was over.
#pragma once

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/leftovers.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::posted_release_test {

using namespace std::chrono_literals;

inline constexpr milliseconds lasting = 10min;
inline const std::string key = "hf:{stock}";

inline milliseconds time_of(const std::function<void()>& what) {
    const auto before = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - before);
}

class PostedRelease : public ::testing::Test {
protected:
    ~PostedRelease() override {
        if (server.running()) server.resume();
    }

    static std::unique_ptr<client> make_client(const std::string& url, const std::string& timeout) {
        return std::make_unique<client>(url + "?timeout=" + timeout, client_options{.max_lease = 1h});
    }
    bool exists() { return server.call({"EXISTS", key}).integer == 1; }
    bool nothing_is_left() {
        return eventually([&] { return leftovers(server).empty(); }, an_age);
    }

    redis_server server;
    tcp_proxy link{server.port()};
};

}  // namespace holdfast::testing::posted_release_test
