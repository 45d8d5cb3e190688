// The note that a run gives by itself: what its command is, and no secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run/command_note.hpp"

namespace holdfast::cli::command_note_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string of(std::vector<std::string> words) {
    return note_of_command(words);
}

TEST(CommandNote, IsTheCommandLine) {
    EXPECT_EQ(of({"rsync", "-a", "/srv/data", "host:/srv"}), "rsync -a /srv/data host:/srv");
    EXPECT_EQ(of({"make", "-j4", "CXX=clang++", "all"}), "make -j4 CXX=clang++ all");
    EXPECT_EQ(of({"curl", "https://example.com:8080/a?b=c"}), "curl https://example.com:8080/a?b=c");
    EXPECT_EQ(of({}), "");
}

TEST(CommandNote, IsCutAndFitToBeShown) {
    const std::string note = of({std::string(5000, 'x')});
    EXPECT_LE(note.size(), 110U);
    EXPECT_EQ(of({"echo", "a\x1b[2Jb"}), "echo a_[2Jb");
    EXPECT_EQ(of({"sh", "-c", "one\n\ttwo"}), "sh -c one two");
}

TEST(CommandNote, HasNoSecret) {
    const std::vector<std::vector<std::string>> commands{
        {"mysql", "--password=s3cret"},
        {"mysql", "--password", "s3cret"},
        {"mysql", "-ps3cret", "db"},
        {"mysql", "-p", "s3cret"},
        {"tool", "--token", "s3cret", "go"},
        {"tool", "--api-key=s3cret"},
        {"tool", "--apikey", "s3cret"},
        {"tool", "--access_key_id", "s3cret"},
        {"tool", "--secret-file", "s3cret"},
        {"tool", "-passphrase", "s3cret"},
        {"env", "DB_PASSWORD=s3cret", "job"},
        {"env", "AWS_SECRET_ACCESS_KEY=s3cret", "job"},
        {"psql", "postgres://user:s3cret@host/db"},
        {"redis-cli", "-u", "redis://:s3cret@host"},
        {"git", "clone", "https://s3cret@github.com/x/y"},
        {"tool", "--url=amqp://a:s3cret@b.c:5672/v"},
        {"curl", "-u", "user:s3cret", "https://x"},
        {"curl", "--user", "user:s3cret", "https://x"},
        {"curl", "-H", "Authorization: Bearer s3cret", "https://x"},
        {"curl", "-H", "Authorization: s3cret", "https://x"},
        {"curl", "-H", "X-Api-Key:s3cret", "https://x"},
        {"curl", "https://x/y?a=b&token=s3cret&c=d"},
        {"curl", "--data", "{\"password\":\"s3cret\"}"},
        {"curl", "--data", "{\"password\": \"s3cret\"}"},
        {"curl", "--cookie", "s3cret"},
        {"sh", "-c", "PASSWORD=s3cret job --x"},
        {"sh", "-c", "job --password s3cret | tee log"},
        {"sh", "-c", "mysql -ps3cret db"},
        {"sshpass", "-p", "s3cret", "ssh", "host"},
        {"redis-cli", "-a", "s3cret", "ping"},
        {"/usr/bin/valkey-cli", "-h", "db", "-a", "s3cret", "ping"},
        {"sudo", "redis-cli", "-a", "s3cret"},
        {"sh", "-c", "redis-cli -a s3cret ping"},
        {"redis-cli", "config", "set", "requirepass", "s3cret"},
        {"curl", "-uadmin:s3cret", "https://x"},
        {"curl", "--user=admin:s3cret", "https://x"},
        {"curl", "--proxy-user", "admin:s3cret", "https://x"},
        {"curl", "--proxy-user=admin:s3cret", "https://x"},
        {"curl", "-Uadmin:s3cret", "https://x"},
        {"curl", "-b", "sid=s3cret", "https://x"},
        {"smbclient", "-U", "me%s3cret", "//host/share"},
        {"ldapsearch", "-w", "s3cret"},
        {"openssl", "enc", "-k", "s3cret"},
        {"http", "-a", "me:s3cret", "example.org"},
        {"git", "config", "user.password", "s3cret"},
        {"mysql", "--password", "correct s3cret"},
        {"mysql", "--password=correct s3cret"},
        {"env", "DB_PASSWORD=correct s3cret", "job"},
        {"sh", "-c", "mysql --password \"correct s3cret\" db"},
        {"sh", "-c", "mysql --password 'correct horse s3cret' db"},
        {"sh", "-c", "DB_PASSWORD='correct s3cret' job"},
        {"sh", "-c", "echo don't; mysql --password s3cret"},
        {"sh", "-c", "ssh host \"mysql --password s3cret\""},
        {"curl", "-H", "Cookie: a=b; sid=s3cret", "https://x"},
        {"curl", "-HCookie: a=b; sid=s3cret", "https://x"},
        {"curl", "--header=Cookie: a=b; sid=s3cret", "https://x"},
        {"curl", "--cookie", "a=b; sid=s3cret", "https://x"},
        {"curl", "-H", "Authorization: Digest username=\"x\", response=\"s3cret\"", "https://x"},
        {"sh", "-c", "curl -H 'Cookie: a=b; sid=s3cret' https://x"},
        {"curl", "--data", "{\"password\": \"correct, s3cret\"}"},
        {"curl", "--data", "user=me&password=correct s3cret&x=y"},
    };
    for (const auto& command : commands) {
        EXPECT_THAT(note_of_command(command), Not(HasSubstr("s3cret"))) << command[1];
        EXPECT_THAT(note_of_command(command), HasSubstr("***")) << command[1];
        EXPECT_THAT(note_of_command(command), HasSubstr(command[0]));
    }
}

TEST(CommandNote, HidesWhatLooksGenerated) {
    for (const char* const key :
         {"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE12",
          "eyJhbGciOiJIUzI1NiIsInR5cCI6.eyJzdWIiOiIxMjM0NTY3ODkw", "0123456789abcdef0123456789abcdef",
          "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "/Qx9Ab+C3dE/fG7hI2jK0lMn5oPq8RsTuVwX1yZ4"}) {
        EXPECT_EQ(of({"tool", key, "end"}), "tool *** end");
        EXPECT_EQ(of({"tool", std::string("x=") + key}), "tool x=***");
    }
    EXPECT_EQ(of({"aws", "configure", "set", "aws_secret_access_key", "short"}),
              "aws configure set aws_secret_access_key ***");
    for (const char* const path : {"/var/lib/some-directory/with-long-name2",
                                   "src/MyClass/FooBarBaz/HTTPServer2Test.cpp", "/srv/Backup/January/Data2/DB01/all"}) {
        EXPECT_EQ(of({"tool", path}), std::string("tool ") + path);
    }
}

TEST(CommandNote, KeepsWhatFollowsASecret) {
    EXPECT_EQ(of({"tool", "--token", "abc", "go", "on"}), "tool --token *** go on");
    EXPECT_EQ(of({"tool", "--no-password", "--verbose", "go"}), "tool --no-password --verbose go");
    EXPECT_EQ(of({"redis-cli", "-a", "abc", "get", "x"}), "redis-cli -a *** get x");
    EXPECT_EQ(of({"curl", "-uadmin:abc", "https://x"}), "curl -uadmin:*** https://x");
    EXPECT_EQ(of({"curl", "-fsSu", "admin:abc", "https://x"}), "curl -fsSu admin:*** https://x");
    EXPECT_EQ(of({"curl", "--proxy-user=admin:abc", "https://x"}), "curl --proxy-user=admin:*** https://x");
    EXPECT_EQ(of({"curl", "-H", "Cookie: a=b; c=d", "https://x"}), "curl -H Cookie:*** https://x");
    EXPECT_EQ(of({"sh", "-c", "job --password 'a b' --x 'c d' e"}), "sh -c job --password *** --x 'c d' e");
}

}  // namespace
}  // namespace holdfast::cli::command_note_test
