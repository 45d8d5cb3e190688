// Compares the server model with a real redis-server, step by step.
//
// Both run the same random commands and scripts on the same clock: the test sets the real server's clock
// (server_model/preload/clock.cpp), so expiry is compared to the millisecond. A batch of steps runs at one instant,
// pipelined. Then time moves, mostly forward by a little. The test compares replies at every step, messages after every
// batch, and the whole keyspace every few batches.
//
// A failure prints the seed, the step and the last commands. HOLDFAST_DIFF_SEED replays it, HOLDFAST_DIFF_STEPS sets
// the length.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>

#include "server_model/command.hpp"
#include "server_model/differential/command_maker.hpp"
#include "server_model/differential/real_server.hpp"
#include "server_model/differential/script_maker.hpp"
#include "server_model/server_model.hpp"

namespace holdfast::sim::server_model_differential_test {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

constexpr std::int64_t start_us = 1'800'000'000'123'456;

// Replies whose order a real server does not define.
value in_defined_order(const word_list& command, value reply) {
    const auto sorted = [](value& list) {
        std::sort(list.items.begin(), list.items.end(), [](const value& a, const value& b) { return a.text < b.text; });
    };
    if (reply.type != value::kind::array) return reply;
    const std::string name = lower_case(command[0]);
    if (name == "keys" || name == "smembers") sorted(reply);
    if (name == "scan" && reply.items.size() == 2) sorted(reply.items[1]);
    if (name == "pubsub" && command.size() > 1 && lower_case(command[1]).ends_with("channels")) sorted(reply);
    return reply;
}

std::string shown(const word_list& command) {
    std::string out;
    for (const auto& word : command) out += in_quotes(word) + ' ';
    return out;
}

class comparison : public ::testing::Test {
protected:
    comparison() : seed_(from_environment("HOLDFAST_DIFF_SEED", 20261115)), random_(seed_) {
        model_.set_time(now_us_);
        model_.on_message([this](const message& m) { expected_.push_back(m); });
        for (auto& each : listeners_) {
            listen(each, "w:a", channel_kind::plain);
            if (each.id() == 1) listen(each, "w:{a}", channel_kind::sharded);
            if (each.id() == 2) listen(each, "w:b", channel_kind::plain);
            if (each.id() == 2) listen(each, "w:a", channel_kind::sharded);
        }
    }

    void listen(listener& who, std::string_view channel, channel_kind kind) {
        who.subscribe(channel, kind);
        model_.subscribe(who.id(), channel, kind);
    }

    void move_time() {
        const std::int64_t steps_us[] = {0, 1, 400, 1'000, 1'000, 2'000, 5'000, 20'000, 700'000, -300'000};
        now_us_ += random_.one_in(3) ? random_.pick(steps_us) : 1'000;
        model_.set_time(now_us_);
        server_.set_time(now_us_);
        commands_.set_time(now_us_);
        scripts_.set_time(now_us_);
    }

    void run_batch(const std::function<word_list()>& next) {
        std::vector<word_list> batch;
        for (std::size_t left = 1 + random_.below(40); left > 0; --left) batch.push_back(next());
        for (const auto& command : batch) server_.link().append(command);
        for (const auto& command : batch) {
            const value real = in_defined_order(command, server_.link().read());
            const value modelled = in_defined_order(command, model_.execute(command));
            recent_.push_back(shown(command) + "\n      -> " + real.to_string());
            if (recent_.size() > 25) recent_.pop_front();
            ++steps_;
            errors_ += real.is_error() ? 1U : 0U;
            if (real != modelled) FAIL() << "model: " << modelled << "\n" << story();
        }
        compare_messages();
    }

    void compare_messages() {
        for (auto& each : listeners_) {
            std::vector<std::string> model;
            std::vector<std::string> real;
            for (const auto& m : expected_) {
                if (m.connection == each.id()) model.push_back(line(m));
            }
            for (const auto& m : each.heard()) real.push_back(line(m));
            messages_ += real.size();
            ASSERT_EQ(model, real) << story();
        }
        expected_.clear();
    }

    static std::string line(const message& m) {
        return (m.kind == channel_kind::plain ? "plain " : "sharded ") + in_quotes(m.channel) + ' ' +
               in_quotes(m.payload);
    }

    void compare_state() { ASSERT_EQ(model_.dump(), server_.dump()) << story(); }

    std::string story() const {
        std::string out = "seed " + std::to_string(seed_) + ", step " + std::to_string(steps_) + ", time " +
                          std::to_string(now_us_) + " us, the last steps and the real server's answers:\n";
        for (const auto& each : recent_) out += "  " + each + "\n";
        return out;
    }

    void play(std::uint64_t steps, const std::function<word_list()>& next) {
        const std::uint64_t end = steps_ + steps;
        for (int batch = 0; steps_ < end; ++batch) {
            ASSERT_NO_FATAL_FAILURE(run_batch(next));
            if (batch % 10 == 0) {
                ASSERT_NO_FATAL_FAILURE(compare_state());
            }
            move_time();
        }
        ASSERT_NO_FATAL_FAILURE(compare_state());
        RecordProperty("errors_percent", static_cast<int>(errors_ * 100 / steps_));
    }

    void set_memory_full() {
        server_.link().call({"CONFIG", "SET", "maxmemory", "1"});
        model_.set_memory(server_state::memory_state::full);
    }

    void set_memory_free() {
        server_.link().call({"CONFIG", "SET", "maxmemory", "0"});
        model_.set_memory(server_state::memory_state::free);
    }

    std::uint64_t seed_;
    random_source random_;
    std::int64_t now_us_ = start_us;
    real_server server_{HOLDFAST_SIM_CLOCK_MODULE, start_us};
    listener listeners_[2] = {{server_.unix_path(), 1}, {server_.unix_path(), 2}};
    server_model model_{{.undeclared_keys = key_check::off, .engine = nullptr}};
    command_maker commands_{random_};
    script_maker scripts_{random_, commands_};
    std::vector<message> expected_;
    std::deque<std::string> recent_;
    std::uint64_t steps_ = 0;
    std::uint64_t errors_ = 0;
    std::uint64_t messages_ = 0;
};

const std::uint64_t total_steps = from_environment("HOLDFAST_DIFF_STEPS", 120'000);

using ServerModel = comparison;

TEST_F(ServerModel, AnswersCommandsAsARealServer) {
    play(total_steps / 2, [&] { return commands_.any(); });
    EXPECT_LT(errors_ * 2, steps_) << "most steps should get past the parser";
    EXPECT_GT(messages_, 0U);
}

TEST_F(ServerModel, RunsScriptsAsARealServer) {
    play(total_steps / 4, [&] { return random_.one_in(4) ? commands_.any() : scripts_.small(); });
    EXPECT_LT(errors_ * 2, steps_);
}

TEST_F(ServerModel, RunsHoldfastsScriptsAsARealServer) {
    const auto texts = script_maker::holdfast_texts();
    if (texts.empty()) GTEST_SKIP() << "no scripts are embedded";
    for (const auto& text : texts) {
        ASSERT_EQ(model_.execute({"SCRIPT", "LOAD", text}), server_.link().call({"SCRIPT", "LOAD", text}));
    }
    play(total_steps / 4, [&] { return scripts_.of_holdfast(); });
    EXPECT_LT(errors_ * 5, steps_) << "the scripts' arguments are not plausible";
    EXPECT_GT(messages_, 0U) << "no lock was ever handed over";
}

TEST_F(ServerModel, RefusesMemoryGrowthWhenFullAsARealServer) {
    for (int round = 0; round < 10; ++round) {
        ASSERT_NO_FATAL_FAILURE(
            play(total_steps / 400, [&] { return random_.one_in(2) ? commands_.any() : scripts_.small(); }));
        set_memory_full();
        ASSERT_NO_FATAL_FAILURE(
            play(total_steps / 400, [&] { return random_.one_in(2) ? commands_.any() : scripts_.small(); }));
        set_memory_free();
    }
}

TEST_F(ServerModel, RefusesWritesAsAReplicaAsARealServer) {
    for (int round = 0; round < 5; ++round) {
        ASSERT_NO_FATAL_FAILURE(
            play(total_steps / 400, [&] { return random_.one_in(2) ? commands_.any() : scripts_.small(); }));
        ASSERT_EQ(server_.link().call({"REPLICAOF", "127.0.0.1", "1"}), value::make_status("OK"));
        model_.set_role(role::replica);
        ASSERT_NO_FATAL_FAILURE(
            play(total_steps / 400, [&] { return random_.one_in(2) ? commands_.any() : scripts_.small(); }));
        ASSERT_EQ(server_.link().call({"REPLICAOF", "NO", "ONE"}), value::make_status("OK"));
        model_.set_role(role::primary);
    }
}

}  // namespace
}  // namespace holdfast::sim::server_model_differential_test
