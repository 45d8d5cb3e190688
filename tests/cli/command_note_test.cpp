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
          "eyJhbGciOiJIUzI1NiIsInR5cCI6.eyJzdWIiOiIxMjM0NTY3ODkw", "0123456789abcdef0123456789abcdef"}) {
        EXPECT_EQ(of({"tool", key, "end"}), "tool *** end");
        EXPECT_EQ(of({"tool", std::string("x=") + key}), "tool x=***");
    }
    EXPECT_EQ(of({"tool", "/var/lib/some-directory/with-long-name2"}), "tool /var/lib/some-directory/with-long-name2");
}

TEST(CommandNote, KeepsWhatFollowsASecret) {
    EXPECT_EQ(of({"tool", "--token", "abc", "go", "on"}), "tool --token *** go on");
    EXPECT_EQ(of({"tool", "--no-password", "--verbose", "go"}), "tool --no-password --verbose go");
}

}  // namespace
}  // namespace holdfast::cli::command_note_test
