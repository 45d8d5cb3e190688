// The harness itself: a test that stands on a server which did not stop, pause or restart proves nothing.
#include <gtest/gtest.h>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/sockets.hpp"
#include "support/spawn.hpp"

namespace holdfast::testing {
namespace {

using data = redis_server::data;

TEST(RedisServer, AnswersOnItsPortAndSocket) {
    redis_server server{{.unix_socket = true}};
    EXPECT_EQ(server.call({"PING"}).text, "PONG");
    EXPECT_EQ(server.url(), "redis://127.0.0.1:" + std::to_string(server.port()));
    EXPECT_TRUE(connect_tcp(server.port()));
    EXPECT_TRUE(connect_unix(server.unix_path()));
    EXPECT_LT(server.unix_path().size(), 100U);
}

TEST(RedisServer, IsGoneWithItsObject) {
    pid_t pid = 0;
    std::filesystem::path directory;
    {
        redis_server server;
        pid = server.pid();
        directory = server.directory();
        ASSERT_TRUE(process_is_alive(pid));
    }
    EXPECT_FALSE(process_is_alive(pid));
    EXPECT_FALSE(std::filesystem::exists(directory));
}

}  // namespace
}  // namespace holdfast::testing
