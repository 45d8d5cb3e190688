// Gives the same steps to a real server and to the model, with equal clocks, and compares the answers, the messages and
// all keys.
#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "script/rw/foreign_rw.hpp"
#include "script/rw/rw_model.hpp"
#include "server_model/differential/real_server.hpp"
#include "wire/scripts.hpp"

namespace holdfast::testing {

class rw_comparison : public ::testing::Test {
protected:
    using kind = rw_step::kind;
    static constexpr std::int64_t start_us = 1'800'000'000'000'123;

    rw_comparison() {
        for (const char* channel : {"wake:a", "wake:b"}) {
            listener_.subscribe(channel, sim::channel_kind::plain);
            model_.listen(channel);
        }
        for (const auto& script : wire::all()) load(script.text);
        for (std::size_t i = 0; i < std::size(foreign_texts); ++i) foreign_shas_[i] = load(foreign_texts[i]);
    }

    void start_again() {
        server_.link().call({"FLUSHALL"});
        model_ = rw_model{now_us_};
        for (const char* channel : {"wake:a", "wake:b"}) model_.listen(channel);
        recent_.clear();
    }

    // Steps that are on their way are taken before.
    void pass_us(std::int64_t us) {
        compare();
        now_us_ += us;
        server_.set_time(now_us_);
        model_.set_time(now_us_);
    }
    void pass(std::int64_t ms) { pass_us(ms * 1000); }

    // To another member, whose clock is ahead. The deadlines are put right by the next step, which is one of ours;
    // nothing is compared before it.
    void move_to_clock_ahead_by(std::int64_t ms) {
        compare();
        just_moved_ = true;
        now_us_ += ms * 1000;
        server_.move_to_clock(now_us_);
        model_.move_to_clock(now_us_);
    }

    // To both; the answers are compared by compare().
    void give(const rw_step& step) {
        just_moved_ = false;
        const auto command = to_command(step);
        server_.link().append(command);
        open_.push_back({described(command), model_.run(step)});
    }

    bool just_moved() const { return just_moved_; }

    void compare() {
        if (just_moved_) return;
        for (const auto& [what, modelled] : open_) {
            const sim::value real = server_.link().read();
            recent_.push_back(what + "\n      -> " + real.to_string());
            if (recent_.size() > 30) recent_.pop_front();
            ++steps_;
            if (real.items.empty() || real.items[0].integer > 0) ++done_;
            ASSERT_EQ(modelled, real) << story();
        }
        open_.clear();
        std::vector<rw_model::message> heard;
        for (const auto& m : listener_.heard()) heard.emplace_back(m.channel, m.payload);
        messages_ += heard.size();
        ASSERT_EQ(model_.take_messages(), heard) << story();
        ASSERT_EQ(model_.dump(keys_), server_.dump()) << story();
    }

    std::string story() const {
        std::string out = "time " + std::to_string(now_us_) + " us; the last steps and the server's answers:\n";
        for (const auto& each : recent_) out += "  " + each + "\n";
        return out;
    }

    const rw_keys keys_{"hf:{stock}",       "hf:{stock}:queue",  "hf:{stock}:waiters",
                        "hf:{stock}:fence", "hf:{stock}:leases", "hf:{stock}:grants"};
    std::int64_t now_us_ = start_us;
    sim::real_server server_{HOLDFAST_SIM_CLOCK_MODULE, start_us};
    sim::listener listener_{server_.unix_path(), 1};
    rw_model model_{start_us};
    std::uint64_t steps_ = 0;
    std::uint64_t done_ = 0;  // steps that were not refused
    std::uint64_t messages_ = 0;

private:
    using words = std::vector<std::string>;
    struct asked {
        std::string what;
        sim::value modelled;
    };

    // In the order of rw_step::kind.
    static constexpr std::string_view foreign_texts[] = {
        foreign_rw::lock_to_read,        foreign_rw::lock_to_write, foreign_rw::unlock_from_reading,
        foreign_rw::unlock_from_writing, foreign_rw::renew_reading, foreign_rw::renew_writing};

    std::string load(std::string_view text) { return server_.link().call({"SCRIPT", "LOAD", std::string{text}}).text; }

    words to_command(const rw_step& step) const {
        if (step.what > kind::cancel) {
            const auto index = static_cast<std::size_t>(step.what) - static_cast<std::size_t>(kind::foreign_read);
            return {"EVALSHA", foreign_shas_[index], "1", keys_.lock, step.id, std::to_string(step.lease_ms)};
        }
        static constexpr const char* names[] = {"rw/acquire", "rw/release", "rw/renew", "rw/cancel"};
        words all{"EVALSHA",
                  std::string{wire::find(names[static_cast<std::size_t>(step.what)]).sha1},
                  "6",
                  keys_.lock,
                  keys_.queue,
                  keys_.waiters,
                  keys_.fence,
                  keys_.leases,
                  keys_.grants,
                  step.id,
                  std::to_string(step.retention_ms),
                  step.prefer};
        const auto add = [&](const words& more) { all.insert(all.end(), more.begin(), more.end()); };
        const std::string lease = std::to_string(step.lease_ms);
        if (step.what == kind::acquire) {
            add({std::string(1, step.wants), lease, std::to_string(step.floor), step.channel, step.ticket,
                 std::to_string(step.interval_ms), std::to_string(step.keep_ms), std::to_string(step.token)});
        } else if (step.what == kind::release) {
            add({std::to_string(step.token), step.left_over, lease});
        } else if (step.what == kind::renew) {
            add({lease});
        }
        return all;
    }

    // Without what is always the same.
    std::string described(const words& command) const {
        std::string out;
        for (std::size_t i = 1; i < command.size(); ++i) {
            if (!command[i].starts_with("hf:{")) out += ' ' + sim::in_quotes(name_of(command[i]));
        }
        return std::to_string(now_us_ - start_us) + out;
    }
    std::string name_of(const std::string& word) const {
        for (const auto& script : wire::all()) {
            if (script.sha1 == word) return std::string{script.name};
        }
        static constexpr const char* names[] = {"F read", "F write", "F unread", "F unwrite", "F renew r", "F renew w"};
        for (std::size_t i = 0; i < std::size(names); ++i) {
            if (foreign_shas_[i] == word) return names[i];
        }
        return word;
    }

    std::string foreign_shas_[std::size(foreign_texts)];
    std::vector<asked> open_;
    bool just_moved_ = false;
    std::deque<std::string> recent_;
};

}  // namespace holdfast::testing
