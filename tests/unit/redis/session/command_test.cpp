// The key by which a command is routed.
#include "redis/session/command.hpp"

#include <gtest/gtest.h>

#include "unit/redis/session/recorded_command.hpp"

namespace holdfast::redis::command_test {
namespace {

using testing::bulk;
using testing::encoded;
using testing::event_log;
using testing::recorded_command;

constexpr script any{"any", "0123456789012345678901234567890123456789", "return 1"};

class Command : public ::testing::Test {
protected:
    std::string plain(std::initializer_list<argument> words) {
        subject.set_payload(encoded(words));
        return std::string(subject.first_key());
    }
    std::string scripted(std::string payload) {
        subject.script_payload(any, 3) = std::move(payload);
        return std::string(subject.first_key());
    }

    event_log log;
    recorded_command subject{log, "x"};
};

TEST_F(Command, AScriptsKeyIsTheFirstThatItDeclares) {
    EXPECT_EQ(scripted(bulk("2") + bulk("hf:{x}") + bulk("hf:{x}:queue")), "hf:{x}");
    EXPECT_EQ(scripted(bulk("1") + bulk(std::string(1000, 'k')) + bulk("a")), std::string(1000, 'k'));
    EXPECT_EQ(scripted(bulk("1") + bulk("a\r\n$1\r\nb") + bulk("c")), "a\r\n$1\r\nb");
    EXPECT_EQ(scripted(bulk("0") + bulk("no key") + bulk("either")), "");
}

TEST_F(Command, TheKeyOfAnyOtherCommandIsItsSecondWord) {
    EXPECT_EQ(plain({"SET", "key", "value"}), "key");
    EXPECT_EQ(plain({"GET", "key"}), "key");
    EXPECT_EQ(plain({"PING"}), "");
    EXPECT_EQ(plain({"H1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}), "2") << "two digits in the header";
    subject.set_subscription("channel");
    EXPECT_EQ(subject.first_key(), "channel");
}

TEST_F(Command, WithoutAPayloadThereIsNoKey) {
    subject.set_payload("");
    EXPECT_EQ(subject.first_key(), "");
    EXPECT_EQ(scripted(""), "");
    EXPECT_EQ(scripted("$1\r\n1\r\n$9"), "") << "cut off";
}

}  // namespace
}  // namespace holdfast::redis::command_test
