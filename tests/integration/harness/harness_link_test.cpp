// Servers that misbehave and links that go bad: they must do so exactly as asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_proxy.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::harness_link_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(MisbehavingServer, SilentOneTakesAllAndAnswersNothing) {
    misbehaving_server server{behaviours::silent()};
    const unique_fd client = connect_tcp(server.port());
    send_all(client, ping);
    EXPECT_FALSE(readable_within(client, a_while));
    EXPECT_TRUE(eventually([&] { return server.connections() == 1; }));
}

TEST(MisbehavingServer, HalfAReplyThenSilenceOrClose) {
    misbehaving_server hangs{behaviours::half_reply_then_silence()};
    const unique_fd first = connect_tcp(hangs.port());
    send_all(first, ping);
    EXPECT_THAT(receive(first, 22), StartsWith("*3\r\n$5\r\nfirst"));
    EXPECT_FALSE(readable_within(first, a_while));
    misbehaving_server closes{behaviours::half_reply_then_close()};
    const unique_fd second = connect_tcp(closes.port());
    send_all(second, ping);
    EXPECT_THAT(receive(second, 100), StartsWith("*3\r\n$5\r\nfirst"));
    EXPECT_TRUE(closed_by_peer(second));
}

TEST(MisbehavingServer, GarbageAndGiantHeaders) {
    misbehaving_server garbage{behaviours::garbage()};
    const unique_fd first = connect_tcp(garbage.port());
    send_all(first, ping);
    EXPECT_THAT(receive(first, 20), HasSubstr("this is not RESP"));
    misbehaving_server giant{behaviours::giant_bulk_header()};
    const unique_fd second = connect_tcp(giant.port());
    send_all(second, ping);
    EXPECT_EQ(receive(second, 22), "$4611686018427387904\r\n");
}

TEST(MisbehavingServer, AnswersHelloThenAsksTheHandler) {
    const auto echo = [](fake_connection& connection, const command& asked) {
        connection.write("+" + asked.at(0) + "/" + std::to_string(asked.size()) + "\r\n");
    };
    misbehaving_server server{behaviours::after_hello(echo, {.version = "6.0.1"})};
    const unique_fd client = connect_tcp(server.port());
    send_all(client, "*2\r\n$5\r\nhello\r\n$1\r\n3\r\n*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\n");
    const std::string hello = behaviours::hello_reply({.version = "6.0.1"});
    EXPECT_THAT(hello, HasSubstr("$7\r\nversion\r\n$5\r\n6.0.1\r\n$5\r\nproto\r\n:3\r\n"));
    EXPECT_EQ(receive(client, hello.size()), hello);
    EXPECT_EQ(receive(client, 8), "+GET/2\r\n");
}

// The fake HELLO is worth something only if it has the shape of the real one.
TEST(MisbehavingServer, HelloHasTheShapeOfARealOne) {
    redis_server real;
    const unique_fd client = connect_tcp(real.port());
    send_all(client, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
    const bool is_valkey = real.call({"INFO", "server"}).text.find("\nserver_name:valkey") != std::string::npos;
    const std::string name = is_valkey ? "valkey" : "redis";
    const std::string expected =
        behaviours::hello_reply({.server = name, .version = real.info("server", name + "_version")});
    const std::string got = receive(client, expected.find("$2\r\nid"));
    EXPECT_EQ(got, expected.substr(0, got.size()));
}

TEST(MisbehavingServer, ResetIsSeenAsReset) {
    misbehaving_server server{
        behaviours::each_command([](fake_connection& connection, const command&) { connection.reset(); })};
    const unique_fd client = connect_tcp(server.port());
    send_all(client, ping);
    ASSERT_TRUE(readable_within(client, 10s));
    char byte;
    EXPECT_EQ(::recv(client.get(), &byte, 1, 0), -1);
    EXPECT_EQ(errno, ECONNRESET);
}

TEST(MisbehavingServer, ListensOnAUnixSocketToo) {
    const temp_directory directory;
    misbehaving_server server{behaviours::each_command(answers::with("+hi\r\n")),
                              {.unix_path = directory.path() / "s"}};
    const unique_fd client = connect_unix(directory.path() / "s");
    send_all(client, ping);
    EXPECT_EQ(receive(client, 5), "+hi\r\n");
}

TEST(MisbehavingServer, StopsWhateverItsSessionsDo) {
    std::atomic<int> ended = 0;
    misbehaving_server server{[&](fake_connection& connection) {
        if (connection.number() == 0) {
            EXPECT_FALSE(connection.sleep_for(1h));
        }
        if (connection.number() == 1) {
            EXPECT_EQ(connection.read_some(), "");
        }
        if (connection.number() == 2) {
            EXPECT_FALSE(connection.write(std::string(1 << 26, 'x')));
        }
        ++ended;
    }};
    std::vector<unique_fd> clients;
    for (int i = 0; i < 3; ++i) clients.push_back(connect_tcp(server.port()));
    ASSERT_TRUE(eventually([&] { return server.connections() == 3; }));
    server.stop();
    EXPECT_EQ(ended, 3);
    EXPECT_TRUE(refused(server.port()));
}

TEST(TcpProxy, ForwardsBothWays) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    const unique_fd client = connect_tcp(proxy.port());
    const std::string big(3 << 20, 'x');
    send_all(client, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + std::to_string(big.size()) + "\r\n" + big + "\r\n");
    EXPECT_EQ(receive(client, 5), "+OK\r\n");
    EXPECT_EQ(server.call({"STRLEN", "k"}).integer, 3 << 20);
    EXPECT_EQ(proxy.connections(), 1);
}

TEST(TcpProxy, PassesOnThatAPeerClosed) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    const unique_fd client = connect_tcp(proxy.port());
    send_all(client, "QUIT\r\n");
    EXPECT_EQ(receive(client, 5), "+OK\r\n");
    EXPECT_TRUE(closed_by_peer(client));
}

TEST(TcpProxy, CutClosesPresentConnectionsAndTakesNewOnes) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    const unique_fd before = connect_tcp(proxy.port());
    ASSERT_TRUE(eventually([&] { return proxy.connections() == 1; }));
    proxy.cut();
    EXPECT_EQ(proxy.connections(), 0);
    EXPECT_TRUE(closed_by_peer(before));
    const unique_fd after = connect_tcp(proxy.port());
    send_all(after, ping);
    EXPECT_EQ(receive(after, pong.size()), pong);
    EXPECT_EQ(proxy.accepted(), 2);
}

TEST(TcpProxy, RefusesUntilItAcceptsAgain) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    const unique_fd before = connect_tcp(proxy.port());
    ASSERT_TRUE(eventually([&] { return proxy.connections() == 1; }));
    proxy.refuse();
    EXPECT_TRUE(refused(proxy.port()));
    send_all(before, ping);
    EXPECT_EQ(receive(before, pong.size()), pong) << "present connections go on";
    proxy.accept();
    const unique_fd after = connect_tcp(proxy.port());
    send_all(after, ping);
    EXPECT_EQ(receive(after, pong.size()), pong);
}

TEST(TcpProxy, StalledRepliesAreLostByACut) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    const unique_fd client = connect_tcp(proxy.port());
    proxy.stall(direction::to_client);
    send_all(client, "INCR n\r\n");
    ASSERT_TRUE(eventually([&] { return server.call({"GET", "n"}).text == "1"; }));
    EXPECT_FALSE(readable_within(client, a_while));
    proxy.cut();
    EXPECT_TRUE(closed_by_peer(client)) << "no reply before the end";
}

TEST(TcpProxy, StalledRequestsComeAfterwards) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    proxy.stall(direction::both);
    const unique_fd client = connect_tcp(proxy.port());
    send_all(client, "INCR n\r\n");
    std::this_thread::sleep_for(a_while);
    EXPECT_TRUE(server.call({"GET", "n"}).is_nil());
    proxy.unstall(direction::to_server);
    ASSERT_TRUE(eventually([&] { return server.call({"GET", "n"}).text == "1"; }));
    EXPECT_FALSE(readable_within(client, a_while));
    proxy.unstall(direction::to_client);
    EXPECT_EQ(receive(client, 4), ":1\r\n");
}

TEST(TcpProxy, StallHidesThatThePeerIsGone) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    const unique_fd client = connect_tcp(proxy.port());
    ASSERT_TRUE(eventually([&] { return proxy.connections() == 1; }));
    proxy.stall(direction::both);
    server.kill();
    EXPECT_FALSE(readable_within(client, a_while));
    proxy.unstall(direction::both);
    EXPECT_TRUE(closed_by_peer(client));
}

TEST(TcpProxy, DelayIsAtLeastWhatWasAskedFor) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    proxy.delay(direction::to_server, 60ms);
    proxy.delay(direction::to_client, 40ms);
    const unique_fd client = connect_tcp(proxy.port());
    const auto before = std::chrono::steady_clock::now();
    send_all(client, ping);
    EXPECT_EQ(receive(client, pong.size()), pong);
    EXPECT_GE(std::chrono::steady_clock::now() - before, 100ms);
}

TEST(TcpProxy, ClosesWhoComesWhileTheServerIsDown) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    server.kill();
    const unique_fd client = connect_tcp(proxy.port());
    EXPECT_TRUE(closed_by_peer(client));
}

}  // namespace
}  // namespace holdfast::testing::harness_link_test
