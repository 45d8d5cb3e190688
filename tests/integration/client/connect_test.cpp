// Servers that cannot be reached, do not let us in, or do not speak as expected on that port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <cstdlib>
#include <fstream>

#include "integration/refusal.hpp"
#include "support/redis_server.hpp"
#include "support/sockets.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::connect_test {
namespace {

using ::testing::HasSubstr;

TEST(Connect, WrongHostName) {
    expect_client_refused(errc::host_not_found, "redis://:hunter2@no-such-host.invalid:1?timeout=20s",
                          "no-such-host.invalid");
}

TEST(Connect, RefusedPort) {
    const reserved_port nobody = reserve_port();
    expect_client_refused(errc::connection_refused, "redis://:hunter2@" + at_port(nobody.port), at_port(nobody.port));
}

TEST(Connect, MissingUnixSocket) {
    const temp_directory empty;
    const std::string path = empty.path().string() + "/none.sock";
    expect_client_refused(errc::connection_refused, "unix://:hunter2@" + path, path);
}

TEST(Connect, OverTcpAndUnixSocket) {
    redis_server server{{.unix_socket = true, .requirepass = password}};
    for (const std::string& url : {server.url(), server.unix_url()}) {
        client subject{url};
        subject.ping();
        mutex lock{subject, "stock"};
        EXPECT_TRUE(lock.try_acquire()) << url;
        EXPECT_THAT(subject.server(), ::testing::Not(HasSubstr(password)));
    }
}

TEST(Connect, WithDatabaseAndName) {
    redis_server server;
    client subject{server.url() + "/5?client_name=teller"};
    mutex lock{subject, "stock"};
    const lease held = lock.acquire();
    EXPECT_THAT(server.call({"CLIENT", "LIST"}).text, HasSubstr("name=teller"));
    EXPECT_THAT(server.call({"INFO", "keyspace"}).text, HasSubstr("db5:keys="));
    EXPECT_EQ(server.call({"EXISTS", "hf:{stock}"}).integer, 0);
}

TEST(Connect, ADatabaseThatDoesNotExist) {
    redis_server server;
    expect_client_refused(errc::no_such_database, server.url() + "/999", at_port(server.port()));
}

TEST(Connect, WrongPassword) {
    redis_server server{{.requirepass = "right"}};
    expect_client_refused(errc::wrong_password, "redis://:hunter2@" + at_port(server.port()), at_port(server.port()));
    expect_client_refused(errc::wrong_password, "redis://nobody:hunter2@" + at_port(server.port()),
                          at_port(server.port()));
}

TEST(Connect, NoPasswordWhereOneIsNeeded) {
    redis_server server{{.requirepass = "right"}};
    expect_client_refused(errc::auth_required, "redis://" + at_port(server.port()), at_port(server.port()));
}

TEST(Connect, PasswordFromFileOrEnvironment) {
    redis_server server{{.requirepass = password}};
    const temp_directory directory;
    const std::string file = directory.path().string() + "/secret";
    std::ofstream{file} << password << "\n";
    client from_file{"redis://" + at_port(server.port()) + "?password_file=" + file};
    from_file.ping();
    ::setenv("HOLDFAST_TEST_PASSWORD", password.c_str(), 1);
    client from_environment{"redis://" + at_port(server.port()) + "?password_env=HOLDFAST_TEST_PASSWORD"};
    from_environment.ping();
}

}  // namespace
}  // namespace holdfast::testing::connect_test
