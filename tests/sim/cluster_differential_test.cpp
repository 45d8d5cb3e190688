// Compares the server model with a real member of a Cluster while a slot moves: which commands and scripts each
// refuses, with which error, and what a script has changed when it is stopped.
//
// The old and the new owner are two members that do not know each other (support/cluster_member.hpp). The test tries
// all sets of existing keys; with each set all commands, with and without ASKING.

#include <gtest/gtest.h>

#include <algorithm>

#include "server_model/differential/real_server.hpp"
#include "server_model/server_model.hpp"
#include "support/cluster_member.hpp"
#include "wire/scripts.hpp"

namespace holdfast::sim::cluster_differential_test {
namespace {

using words = std::vector<std::string>;
using share = testing::cluster_member::share;
using where = slot_standing::where;

constexpr const char* other_member = "127.0.0.1:1";
const words names{"hf:{x}", "hf:{x}:queue", "hf:{x}:waiters", "hf:{x}:fence"};

// A set of names, one bit each.
words subset(unsigned chosen) {
    words some;
    for (unsigned i = 0; i < 4; ++i) {
        if ((chosen >> i & 1U) != 0) some.push_back(names[i]);
    }
    return some;
}

// The slot of {x} moves. {y} is in another slot, which does not move.
class moving_tag final : public slot_guard {
public:
    moving_tag(share owned, unsigned slot_of_x, unsigned slot_of_y) : owned_(owned), x_(slot_of_x), y_(slot_of_y) {}

    slot_standing standing_of(std::string_view key) const override {
        const bool ours = owned_ == share::all_slots;
        if (key.find("{x}") == key.npos) return {y_, ours ? where::here : where::elsewhere, other_member};
        return {x_, ours ? where::leaving : where::arriving, other_member};
    }

private:
    share owned_;
    unsigned x_, y_;
};

class comparison : public ::testing::Test {
protected:
    explicit comparison(share owned)
        : owned_{owned},
          real_{member().server().unix_path()},
          guard_{owned, slot_of("hf:{x}"), slot_of("hf:{y}")},
          model_{{.undeclared_keys = key_check::off, .engine = nullptr}} {}
    ~comparison() override { stay(); }

    testing::cluster_member& member() {
        static testing::cluster_member old_owner{share::all_slots}, new_owner{share::no_slot};
        return owned_ == share::all_slots ? old_owner : new_owner;
    }

    // Both have these keys and no others, and the slot is moving.
    void begin_with(const words& present) {
        start_again();
        const bool arrives = owned_ == share::no_slot;
        if (arrives) member().begin_move("hf:{x}");
        for (const std::string& key : present) {
            const words put{"SET", key, "a"};
            if (arrives) must({"ASKING"});
            must(put);
            model_.execute(put);
        }
        begin_move();
    }
    void start_again() {
        stay();
        must({"FLUSHALL"});
        model_.guard_slots(nullptr);
        model_.execute(words{"FLUSHALL"});
    }
    void begin_move() {
        member().begin_move("hf:{x}");
        model_.guard_slots(&guard_);
    }
    void stay() { member().call_off_move("hf:{x}"); }

    void compare(const words& command, asking asked) {
        model_.set_time(real_us());
        if (asked == asking::yes) must({"ASKING"});
        const value real = real_.call(command);
        const value modelled = model_.execute(command, asked);
        ASSERT_EQ(modelled, real) << (asked == asking::yes ? "ASKING, " : "") << command[0] << " " << command[1];
    }
    // Tokens and times differ, but both answer, or both are stopped at the same line.
    void compare_refusal(const words& command) {
        model_.set_time(real_us());
        const value real = real_.call(command);
        const value modelled = model_.execute(command);
        ASSERT_EQ(modelled.is_error(), real.is_error()) << modelled << " and really " << real;
        if (real.is_error()) {
            ASSERT_EQ(modelled, real);
        }
    }
    // The keys of {x}. MIGRATING and IMPORTING do not hide keys from a dump of the whole keyspace.
    words there() {
        words all;
        for (const value& key : must({"KEYS", "*"}).items) all.push_back(key.text);
        std::ranges::sort(all);
        return all;
    }
    words modelled_there() {
        words all;
        for (const value& key : model_.execute(words{"KEYS", "*"}).items) all.push_back(key.text);
        return all;
    }

    value must(const words& command) {
        value reply = real_.call(command);
        if (reply.is_error()) throw std::runtime_error(command[0] + ": " + reply.text);
        return reply;
    }

    const share owned_;
    raw_link real_;
    moving_tag guard_;
    server_model model_;

private:
    unsigned slot_of(const std::string& key) {
        return static_cast<unsigned>(must({"CLUSTER", "KEYSLOT", key}).integer);
    }
    std::int64_t real_us() {
        const value time = must({"TIME"});
        return std::stoll(time.items[0].text) * 1'000'000 + std::stoll(time.items[1].text);
    }
};

words eval(const std::string& text, const words& keys) {
    words command{"EVAL", text, std::to_string(keys.size())};
    command.insert(command.end(), keys.begin(), keys.end());
    return command;
}

// Each command takes the given keys and uses some of them.
const std::vector<words> commands = [] {
    std::vector<words> all{
        {"GET", "hf:{x}"},
        {"GET", "hf:{y}"},
        {"SET", "hf:{x}", "b"},
        {"EXISTS", "hf:{x}", "hf:{x}:queue"},
        {"EXISTS", "hf:{x}", "hf:{x}"},
        {"EXISTS", "hf:{x}", "hf:{y}"},
        {"DEL", "hf:{x}:queue", "hf:{x}:fence"},
        {"PTTL", "hf:{x}:fence"},
        {"SPUBLISH", "hf:wake:{x}:c", "m"},
        {"SPUBLISH", "hf:wake:{y}:c", "m"},
        {"PUBLISH", "hf:wake:{x}:c", "m"},
        {"PUBSUB", "SHARDNUMSUB", "hf:wake:{y}:c"},
        {"PING", "x"},
        eval("return 1", {}),
        eval("return redis.pcall('SPUBLISH', 'hf:wake:{x}:c', 'm')", {"hf:{x}"}),
        eval("return redis.pcall('SPUBLISH', 'hf:wake:{y}:c', 'm')", {"hf:{x}"}),
        eval("return redis.call('PUBSUB', 'SHARDNUMSUB', 'hf:wake:{y}:c')", {"hf:{x}"}),
        eval("return redis.call('GET', KEYS[1])", {"hf:{x}", "hf:{y}"}),
        eval("return redis.call('GET', 'hf:{y}')", {"hf:{x}"}),
        eval("return redis.call('EXISTS', 'hf:{x}', 'hf:{x}:queue')", {"hf:{x}"}),
        eval("return {redis.pcall('ZCARD', 'hf:{x}:nowhere')}", {"hf:{x}"}),
        eval("redis.call('DEL', KEYS[1])\nreturn redis.call('GET', KEYS[1])", {"hf:{x}"}),
        eval("redis.call('DEL', KEYS[1])\nreturn {redis.pcall('EXISTS', KEYS[1])}", {"hf:{x}"}),
        eval("redis.call('DEL', KEYS[1])\nredis.call('SET', KEYS[1], 'again')\nreturn redis.call('GET', KEYS[1])",
             {"hf:{x}"}),
        eval("redis.call('DEL', KEYS[2])\nredis.call('SET', KEYS[1], 'b')\nredis.call('SET', KEYS[2], 'b')", names),
    };
    // For every set of declared keys: does the script run at all?
    for (unsigned chosen = 1; chosen < 16; ++chosen) {
        all.push_back(eval("return 'ran'", subset(chosen)));
    }
    return all;
}();

class ClusterMember : public comparison, public ::testing::WithParamInterface<share> {
protected:
    ClusterMember() : comparison{GetParam()} {}
};

TEST_P(ClusterMember, RefusesAsARealMember) {
    for (unsigned chosen = 0; chosen < 16; ++chosen) {
        SCOPED_TRACE(chosen);
        for (const asking asked : {asking::no, asking::yes}) {
            for (const words& command : commands) {
                ASSERT_NO_FATAL_FAILURE(begin_with(subset(chosen)));
                ASSERT_NO_FATAL_FAILURE(compare(command, asked));
                ASSERT_EQ(modelled_there(), there()) << command[0] << " " << command[1];
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Members, ClusterMember, ::testing::Values(share::all_slots, share::no_slot),
                         [](const auto& one) { return one.param == share::all_slots ? "OldOwner" : "NewOwner"; });

class OldOwner : public comparison {
protected:
    OldOwner() : comparison{share::all_slots} {}
};

// --- holdfast's own scripts

std::string id(char who) {
    return "hf_" + std::string(16, who) + ".1." + std::string(22, 'r');
}

words run(const std::string& script, const words& arguments) {
    words keys = names;
    if (script.starts_with("rw/")) keys.insert(keys.end(), {"hf:{x}:leases", "hf:{x}:grants"});
    words command = eval(std::string{wire::find(script).text}, keys);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
}

words take(char who) {
    return run("mutex/acquire", {id(who), "60000", "0", "3600000", "w", "0", "10000", "61000", "0", "0"});
}
words drop(char who) {
    return run("mutex/release", {id(who), "0", "3600000", "0"});
}
words want(const std::string& wish, char who) {
    return run("rw/acquire",
               {id(who), "3600000", "arrival", wish, "60000", "0", "w", "0", "10000", "61000", "0", "0", "0"});
}
words read(char who) {
    return want("r", who);
}
words write(char who) {
    return want("w", who);
}
words leave(char who) {
    return run("rw/release", {id(who), "3600000", "arrival", "0", "", "60000", "0"});
}
words renew(char who) {
    return run("rw/renew", {id(who), "3600000", "arrival", "60000", "0"});
}
words cancel(char who) {
    return run("rw/cancel", {id(who), "3600000", "arrival", "0"});
}

// A lock with a holder, with or without a waiter, and each of the next steps.
struct scene {
    std::vector<std::vector<words>> before;
    std::vector<words> next;
};

const scene scenes[] = {
    {{{take('a')}, {take('a'), take('b')}, {take('a'), take('b'), take('c')}},
     {take('a'), take('b'), take('d'), drop('a'), drop('b'), drop('d')}},
    {{{write('a')},
      {write('a'), write('b')},
      {write('a'), write('b'), read('c')},
      {write('a'), read('b'), read('c')},
      {read('a')},
      {read('a'), write('b')},
      {read('a'), read('b'), write('c')}},
     {write('a'), write('b'), read('b'), read('d'), leave('a'), leave('b'), renew('a'), renew('b'), cancel('a'),
      cancel('b'), write('d')}},
};

// The old owner runs, refuses or stops the script as the model does, and the same keys are left.
TEST_F(OldOwner, RunsHoldfastsScriptsAsARealMember) {
    for (const scene& each : scenes) {
        for (std::size_t i = 0; i < each.before.size() * each.next.size() * 2; ++i) {
            SCOPED_TRACE(i);
            listener ear{member().server().unix_path(), 1};
            if (i % 2 == 0) {  // otherwise the waiters are dead
                ear.subscribe("w", channel_kind::plain);
                model_.subscribe(1, "w");
            }
            start_again();
            for (const words& step : each.before[i / 2 / each.next.size()]) {
                ASSERT_NO_FATAL_FAILURE(compare_refusal(step));
            }
            begin_move();
            ASSERT_NO_FATAL_FAILURE(compare_refusal(each.next[i / 2 % each.next.size()]));
            ASSERT_EQ(modelled_there(), there());
            model_.unsubscribe_all(1);
        }
    }
}

}  // namespace
}  // namespace holdfast::sim::cluster_differential_test
