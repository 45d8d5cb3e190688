// The driver between a session and its streams, on a loop that the test turns by hand.
#include "redis/session/connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "base/boot_clock.hpp"
#include "redis/session/command_writer.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::connection_test {
namespace {

using namespace std::chrono_literals;

class ping_command final : public redis::command {
public:
    ping_command() {
        std::string encoded;
        redis::append_command(encoded, {"PING"});
        set_payload(std::move(encoded));
    }
    void on_reply(const redis::reply_view&, instant) override { ++replies; }
    void on_failure(const failure& why, instant) override { failed = why.code; }
    int replies = 0;
    errc failed{};
};

// Everything runs on the test's thread; whoever is inside keeps handlers waiting, as another thread would.
class by_hand final : public serial_section, private redis::session_listener {
public:
    explicit by_hand(const std::string& url) : link(context, *this, redis::parse_url(url), *this, 1) {}
    ~by_hand() override {
        enter_with([&] { link.close(boot_now()); });
        context.poll();
    }

    bool turn_until(const std::function<bool()>& reached) {
        return eventually([&] {
            enter_with([&] { link.session().on_timer(boot_now()); });
            context.poll();
            context.restart();
            return reached();
        });
    }

    boost::asio::io_context context;
    redis::connection link;

private:
    void settle() override { link.pump(boot_now()); }
    void on_link_up(const redis::server_facts&, instant) override {}
    void on_link_down(const failure&, instant) override {}
    void on_subscription_refused(const failure&, instant) override {}
    void on_push(const redis::reply_view&, instant) override {}
};

// A reply that was read while another thread gave the link up: its handler runs before the stream is closed.
TEST(Connection, WhatComesFromALinkThatWasGivenUpIsIgnored) {
    redis_server server;
    by_hand subject{server.url()};
    redis::session& session = subject.link.session();
    ASSERT_TRUE(subject.turn_until([&] { return session.up(); }));
    ping_command first;
    ping_command second;
    subject.enter_with([&] {
        session.submit(first, boot_now());
        subject.link.pump(boot_now());
        EXPECT_TRUE(eventually([&] { return subject.context.poll() > 0; }));  // the handler waits for us to leave
        session.distrust({errc::read_only, "the test says so"}, boot_now());
        session.submit(second, boot_now());
    });
    EXPECT_EQ(first.failed, errc::outcome_unknown);
    EXPECT_EQ(first.replies, 0);
    EXPECT_TRUE(subject.turn_until([&] { return second.replies == 1; }));
}

TEST(Connection, TheEndOfALinkThatWasGivenUpDoesNotEndTheNextAttempt) {
    misbehaving_server server{behaviours::after_hello([](fake_connection& connection, const command& asked) {
        if (asked.at(0) == "PING" && connection.number() == 0) return connection.close();
        connection.write("$0\r\n\r\n");
    })};
    by_hand subject{server.url()};
    redis::session& session = subject.link.session();
    ASSERT_TRUE(subject.turn_until([&] { return session.up(); }));
    ping_command first;
    subject.enter_with([&] {
        session.submit(first, boot_now());
        subject.link.pump(boot_now());
        EXPECT_TRUE(eventually([&] { return subject.context.poll() > 0; }));
        session.distrust({errc::read_only, "the test says so"}, boot_now());
        while (boot_now() < session.deadline()) {
        }
        session.on_timer(boot_now());  // connects, while the old stream's end waits to be told
    });
    EXPECT_EQ(session.last_failure().code, errc::read_only);
    EXPECT_TRUE(subject.turn_until([&] { return session.up(); }));
    EXPECT_EQ(session.last_failure().code, errc::read_only) << "the new attempt was not disturbed";
}

}  // namespace
}  // namespace holdfast::testing::connection_test
