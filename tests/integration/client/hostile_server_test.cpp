// Peers that hang, lie or speak nonsense: each is told by its own code, and nothing waits for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <thread>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"

namespace holdfast::testing::hostile_server_test {
namespace {

using namespace std::chrono_literals;

// Long enough for a busy machine; only those who wait for silence are quick.
std::string patient_url(const misbehaving_server& server) {
    return "redis://:hunter2@" + at_port(server.port()) + "?timeout=10s";
}
std::string quick_url(const misbehaving_server& server) {
    return "redis://:hunter2@" + at_port(server.port()) + "?timeout=700ms";
}

// Expected when the peer treats the very greeting so.
void expect_from_the_start(errc expected, session behaviour) {
    misbehaving_server server{std::move(behaviour)};
    const bool is_silence = expected == errc::request_timed_out;
    expect_client_refused(expected, is_silence ? quick_url(server) : patient_url(server), at_port(server.port()));
}

TEST(HostileServer, OlderThan62) {
    expect_from_the_start(errc::too_old, behaviours::after_hello(&answers::nothing, {.version = "6.0.16"}));
}

TEST(HostileServer, WithoutHelloAndWithoutAuth) {
    expect_from_the_start(
        errc::unsupported,
        behaviours::each_command(answers::with("-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n")));
}

TEST(HostileServer, ThatSpeaksOnlyResp2) {
    expect_from_the_start(errc::too_old,
                          behaviours::each_command(answers::with("-NOPROTO unsupported protocol version\r\n")));
    expect_from_the_start(errc::too_old,
                          behaviours::each_command(answers::with("*2\r\n$6\r\nserver\r\n$5\r\nredis\r\n")));
}

TEST(HostileServer, ThatIsAReplica) {
    expect_from_the_start(errc::read_only, behaviours::after_hello(&answers::nothing, {.role = "replica"}));
}

TEST(HostileServer, Garbage) {
    expect_from_the_start(errc::protocol_error, behaviours::garbage());
    expect_from_the_start(errc::protocol_error,
                          behaviours::each_command(answers::with("HTTP/1.1 400 Bad Request\r\n\r\n")));
}

TEST(HostileServer, HalfAReplyThenSilence) {
    expect_from_the_start(errc::request_timed_out, behaviours::half_reply_then_silence());
}

TEST(HostileServer, HalfAReplyThenClose) {
    expect_from_the_start(errc::unreachable, behaviours::half_reply_then_close());
    expect_from_the_start(errc::unreachable, behaviours::each_command(&answers::half_then_reset));
}

TEST(HostileServer, GiantBulk) {
    expect_from_the_start(errc::reply_too_large, behaviours::giant_bulk_header());
}

TEST(HostileServer, ThatNeverAnswers) {
    expect_from_the_start(errc::request_timed_out, behaviours::silent());
}

TEST(HostileServer, ThatClosesAtOnceIsTakenForATlsPort) {
    expect_from_the_start(errc::tls_expected, behaviours::closing());
}

TEST(HostileServer, StillLoading) {
    expect_from_the_start(
        errc::loading, behaviours::each_command(answers::with("-LOADING Redis is loading the dataset in memory\r\n")));
}

// Not just for this command: an answer to the next one would be taken for the answer to this.
void silence(fake_connection& connection, const command&) {
    connection.ignore_the_rest();
}

// A greeting that goes well, and then `handler` for every EVALSHA.
session good_until_asked(command_handler handler) {
    return behaviours::after_hello([handler = std::move(handler)](fake_connection& connection, const command& asked) {
        if (asked.at(0) == "EVALSHA" || asked.at(0) == "EVAL") return handler(connection, asked);
        connection.write(asked.at(0) == "PING" ? "+PONG\r\n" : "$0\r\n\r\n");
    });
}

// Expected when the peer was good until it was asked for a lock; it must be as good again afterwards.
void expect_in_mid_life(errc expected, command_handler handler) {
    misbehaving_server server{good_until_asked(std::move(handler))};
    client subject{patient_url(server)};
    subject.ping();
    mutex lock{subject, "stock"};
    expect_refusal(expected, at_port(server.port()), [&] { lock.try_acquire(); });
    expect_refusal(expected, at_port(server.port()), [&] { lock.try_acquire(); });
    EXPECT_TRUE(gets_connected(subject)) << "it makes a new link";
}

TEST(HostileServerInMidLife, RefusalsOfTheServerAreToldApart) {
    const auto says = [](const char* text) { return answers::with("-" + std::string{text} + "\r\n"); };
    expect_in_mid_life(errc::auth_required, says("NOAUTH Authentication required."));
    expect_in_mid_life(errc::no_permission, says("NOPERM this user has no permissions"));
    expect_in_mid_life(errc::loading, says("LOADING Redis is loading the dataset in memory"));
    expect_in_mid_life(errc::read_only, says("READONLY You can't write against a read only replica."));
    expect_in_mid_life(errc::out_of_memory, says("OOM command not allowed when used memory > 'maxmemory'."));
    expect_in_mid_life(errc::busy_script, says("BUSY Redis is busy running a script."));
    expect_in_mid_life(errc::misconfigured, says("MISCONF Redis is configured to save RDB snapshots"));
    expect_in_mid_life(errc::wrong_type, says("WRONGTYPE Operation against a key"));
    expect_in_mid_life(errc::server_error, says("ERR unknown trouble"));
    expect_in_mid_life(errc::server_error, says("NOSCRIPT No matching script."));
}

TEST(HostileServerInMidLife, AnswersOfAnotherForm) {
    for (const char* odd : {"+OK\r\n", ":1\r\n", "*0\r\n", "*1\r\n:1\r\n", "*2\r\n:1\r\n+notanumber\r\n", "_\r\n",
                            "*2\r\n:1\r\n:0\r\n", "*3\r\n:9\r\n:1\r\n+x\r\n", "%1\r\n:1\r\n:1\r\n"}) {
        SCOPED_TRACE(odd);
        expect_in_mid_life(errc::protocol_error, answers::with(odd));
    }
}

TEST(HostileServerInMidLife, GarbageAndGiantsAreToldAtOnce) {
    expect_in_mid_life(errc::protocol_error, &answers::garbage);
    expect_in_mid_life(errc::reply_too_large, &answers::giant_bulk_header);
}

TEST(HostileServerInMidLife, SilenceEndsByTheDeadline) {
    for (const command_handler& handler : {command_handler(&silence), command_handler(&answers::half_then_silence)}) {
        misbehaving_server server{good_until_asked(handler)};
        client subject{quick_url(server)};
        ASSERT_TRUE(gets_connected(subject));
        mutex lock{subject, "stock"};
        for (int i = 0; i < 2; ++i) {
            expect_refusal(errc::request_timed_out, at_port(server.port()), [&] { lock.try_acquire(); });
        }
        EXPECT_FALSE(lock.try_acquire_for(500ms)) << "waiting has an end, too";
    }
}

TEST(HostileServerInMidLife, APingIsAskedAgainOnTheNextLinkUntilItsDeadline) {
    misbehaving_server silent{behaviours::after_hello([](fake_connection& connection, const command& asked) {
        if (asked.at(0) == "PING") return silence(connection, asked);
        connection.write("$0\r\n\r\n");
    })};
    client waits{quick_url(silent)};
    for (int i = 0; i < 2; ++i) {
        expect_refusal(errc::request_timed_out, at_port(silent.port()), [&] { waits.ping(); });
    }
    misbehaving_server closes_once{behaviours::after_hello([](fake_connection& connection, const command& asked) {
        if (asked.at(0) == "PING" && connection.number() == 0) return connection.close();
        connection.write(asked.at(0) == "PING" ? "+PONG\r\n" : "$0\r\n\r\n");
    })};
    client subject{patient_url(closes_once)};
    subject.ping();
    EXPECT_EQ(closes_once.connections(), 2);
}

TEST(HostileServerInMidLife, AnswersThatNobodyAskedForEndTheLink) {
    misbehaving_server server{good_until_asked(answers::with("*2\r\n:1\r\n:5\r\n+more\r\n"))};
    client subject{patient_url(server)};
    mutex lock{subject, "stock"};
    const lease held = lock.try_acquire();
    EXPECT_TRUE(held);
    EXPECT_TRUE(eventually([&] { return server.connections() >= 2; }));
}

}  // namespace
}  // namespace holdfast::testing::hostile_server_test
