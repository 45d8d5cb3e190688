// Every script touches only the keys that its call declares (design §4.8), on a member of a Cluster that refuses
// others.
//
// Two checks are on. The caller has rights to exactly the declared keys, so the server refuses every other key and
// notes it in the ACL LOG. And the script begins with `#!lua`, so Redis 7 refuses keys of more than one slot; without
// that line it allows them for the sake of old scripts. The calls are random and made from the scripts' own headers, so
// a new script takes part as soon as it exists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "server_model/differential/real_server.hpp"
#include "server_model/differential/script_maker.hpp"
#include "support/cluster_member.hpp"
#include "wire/scripts.hpp"

namespace holdfast::testing::cluster_keys_test {
namespace {

using sim::word_list;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int calls = 4000;

class ClusterKeys : public ::testing::Test {
protected:
    ClusterKeys() : link{member.server().unix_path()} {
        must({"ACL", "SETUSER", "strict", "on", ">strict", "&*", "+@all"});
        must({"AUTH", "strict", "strict"});
    }

    void must(const word_list& command) {
        const sim::value answer = link.call(command);
        if (answer.is_error()) throw std::runtime_error{command.at(0) + ": " + answer.text};
    }

    /// With the right to those keys and no others.
    sim::value run(const std::string& text, const word_list& keys, const word_list& arguments) {
        word_list rights{"ACL", "SETUSER", "strict", "resetkeys"};
        for (const std::string& key : keys) rights.push_back("~" + key);
        word_list eval{"EVAL", "#!lua\n" + text, std::to_string(keys.size())};
        eval.insert(eval.end(), keys.begin(), keys.end());
        eval.insert(eval.end(), arguments.begin(), arguments.end());
        link.append(rights);
        link.append(eval);
        link.read();
        return link.read();
    }

    std::string refused() {
        std::string all;
        for (const redis_reply& entry : member.server().call({"ACL", "LOG"}).elements) {
            for (const redis_reply& word : entry.elements) all += word.text + " ";
            all += "\n";
        }
        return all;
    }

    /// Both checks are on.
    void expect_others_are_refused() {
        EXPECT_FALSE(run("return redis.call('GET', KEYS[1])", {"hf:{stock}"}, {}).is_error());
        EXPECT_EQ(refused(), "");
        const std::string other_key = "return redis.call('GET', 'hf:{stock}:fence')";
        EXPECT_TRUE(run(other_key, {"hf:{stock}"}, {}).is_error());
        EXPECT_THAT(refused(), HasSubstr("hf:{stock}:fence"));
        must({"ACL", "SETUSER", "strict", "allkeys"});
        EXPECT_THAT(link.call({"EVAL", "#!lua\nreturn redis.call('GET', 'hf:{other}')", "1", "hf:{stock}"}).text,
                    HasSubstr("same slot"));
        must({"ACL", "LOG", "RESET"});
    }

    cluster_member member{cluster_member::share::all_slots};
    sim::raw_link link;
};

TEST_F(ClusterKeys, AreDeclaredByEveryScript) {
    ASSERT_NO_FATAL_FAILURE(expect_others_are_refused());
    std::map<std::string, const wire::script*> by_sha1;
    for (const wire::script& each : wire::all()) by_sha1[std::string{each.sha1}] = &each;
    sim::random_source random{2026};
    sim::command_maker commands{random};
    sim::script_maker scripts{random, commands};
    // Some of those who wait are there.
    sim::listener ear{member.server().unix_path(), 1};
    ear.subscribe("w:a", sim::channel_kind::plain);
    ear.subscribe("w:{one}", sim::channel_kind::sharded);

    std::map<std::string, int> went_well;
    for (int i = 0; i < calls; ++i) {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        scripts.set_time(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
        const word_list made = scripts.of_holdfast();  // EVALSHA sha1 count keys... arguments...
        const auto first_argument = made.begin() + 3 + std::stol(made.at(2));
        const word_list keys{made.begin() + 3, first_argument};
        word_list arguments{first_argument, made.end()};
        for (std::string& each : arguments) {
            if (each == "w:{a}") each = "w:{one}";
        }
        const wire::script& script = *by_sha1.at(made.at(1));
        const sim::value answer = run(std::string{script.text}, keys, arguments);
        if (!answer.is_error()) {
            ++went_well[std::string{script.name}];
        } else {
            EXPECT_THAT(answer.text, StartsWith("ERR holdfast: ")) << script.name << ": not of its own saying";
        }
    }
    EXPECT_EQ(refused(), "");
    for (const wire::script& each : wire::all()) {
        EXPECT_GT(went_well[std::string{each.name}], calls / 100) << each.name << " was hardly run";
    }
}

}  // namespace
}  // namespace holdfast::testing::cluster_keys_test
