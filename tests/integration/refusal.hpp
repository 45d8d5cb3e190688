// What a failed operation must be like: its own code, a message that names the server and no secret, and an end.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <chrono>
#include <string>

#include "base/errc_table.hpp"
#include "support/eventually.hpp"

namespace holdfast::testing {

inline const std::string password = "hunter2";

/// Far beyond every timeout used in these tests: only a hang reaches it.
inline constexpr auto an_age = std::chrono::seconds{30};

inline std::string to_text(errc code) {
    const errc_row* const row = find_errc(code);
    return row != nullptr ? row->name : "no error";
}

/// What `operation` throws; errc{} if it goes well.
template <typename Operation>
errc condition_of(Operation operation) {
    try {
        operation();
        return errc{};
    } catch (const error& refused) {
        return refused.condition();
    }
}

/// Runs `operation`, which must throw `error` with that code, naming `server`, never the password.
template <typename Operation>
void expect_refusal(errc expected, const std::string& server, Operation operation) {
    const auto before = std::chrono::steady_clock::now();
    try {
        operation();
        ADD_FAILURE() << "went well, expected " << to_text(expected);
    } catch (const error& refused) {
        EXPECT_EQ(to_text(refused.condition()), to_text(expected)) << refused.what();
        EXPECT_EQ(refused.code(), std::error_code(make_error_code(expected)));
        EXPECT_THAT(refused.what(), ::testing::HasSubstr(server));
        EXPECT_THAT(refused.what(), ::testing::Not(::testing::HasSubstr(password)));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - before, an_age);
}

/// Whether it is connected by now. For clients with a timeout so short that a busy machine may miss it at first.
inline bool gets_connected(client& subject) {
    return eventually(
        [&] {
            try {
                subject.ping();
                return true;
            } catch (const error&) {
                return false;
            }
        },
        an_age);
}

/// A client of that URL whose first request must be refused so.
inline void expect_client_refused(errc expected, const std::string& url, const std::string& server) {
    SCOPED_TRACE(url);
    client subject{url};
    expect_refusal(expected, server, [&] { subject.ping(); });
    mutex lock{subject, "stock"};
    expect_refusal(expected, server, [&] { lock.try_acquire(); });
}

inline std::string at_port(int port) {
    return "127.0.0.1:" + std::to_string(port);
}

}  // namespace holdfast::testing
