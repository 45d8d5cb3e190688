// The semaphore's scripts on a real server do what the model does: from every state by every step, and in long random
// sequences. HOLDFAST_SEMAPHORE_SEED and HOLDFAST_SEMAPHORE_STEPS replay and lengthen the random sequences.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <functional>

#include "script/rw/rw_rows.hpp"
#include "script/semaphore/semaphore_model.hpp"
#include "server_model/differential/command_maker.hpp"
#include "server_model/differential/real_server.hpp"
#include "wire/scripts.hpp"

namespace holdfast::testing::semaphore_model_test {
namespace {

using kind = semaphore_step::kind;

// Gives the same steps to a real server and to the model, with equal clocks, and compares the answers, the messages and
// all keys.
class semaphore_comparison : public ::testing::Test {
protected:
    static constexpr std::int64_t start_us = 1'800'000'000'000'123;

    semaphore_comparison() {
        for (const char* channel : {"wake:a", "wake:b"}) {
            listener_.subscribe(channel, sim::channel_kind::plain);
            model_.listen(channel);
        }
        for (const auto& script : wire::all()) server_.link().call({"SCRIPT", "LOAD", std::string{script.text}});
    }

    void start_again() {
        server_.link().call({"FLUSHALL"});
        model_ = semaphore_model{now_us_};
        for (const char* channel : {"wake:a", "wake:b"}) model_.listen(channel);
        recent_.clear();
    }

    void pass_us(std::int64_t us) {
        compare();
        now_us_ += us;
        server_.set_time(now_us_);
        model_.set_time(now_us_);
    }
    void pass(std::int64_t ms) { pass_us(ms * 1000); }

    // To another member, whose clock is ahead. The next step corrects the deadlines; nothing is compared before it.
    void move_to_clock_ahead_by(std::int64_t ms) {
        compare();
        just_moved_ = true;
        now_us_ += ms * 1000;
        server_.move_to_clock(now_us_);
        model_.move_to_clock(now_us_);
    }
    bool just_moved() const { return just_moved_; }

    // To both; the answers are compared by compare().
    void give(const semaphore_step& step) {
        const bool changes_nothing = step.what == kind::renew && model_.token_of(step.id) == 0;
        just_moved_ = just_moved_ && changes_nothing;
        const auto command = to_command(step);
        server_.link().append(command);
        open_.push_back({described(step, command), model_.run(step)});
    }

    void compare() {
        for (const auto& [what, modelled] : open_) {
            const sim::value real = server_.link().read();
            recent_.push_back(what + "\n      -> " + real.to_string());
            if (recent_.size() > 30) recent_.pop_front();
            ++steps_;
            if (!real.items.empty() && real.items[0].integer > 0) ++done_;
            ASSERT_EQ(modelled, real) << story();
        }
        open_.clear();
        if (just_moved_) return;
        std::vector<semaphore_model::message> heard;
        for (const auto& m : listener_.heard()) heard.emplace_back(m.channel, m.payload);
        messages_ += heard.size();
        ASSERT_EQ(model_.take_messages(), heard) << story();
        ASSERT_EQ(model_.dump(keys_), server_.dump()) << story();
    }

    const semaphore_keys keys_{"hf:{pool}",       "hf:{pool}:queue",  "hf:{pool}:waiters",
                               "hf:{pool}:fence", "hf:{pool}:leases", "hf:{pool}:grants"};
    std::int64_t now_us_ = start_us;
    sim::real_server server_{HOLDFAST_SIM_CLOCK_MODULE, start_us};
    sim::listener listener_{server_.unix_path(), 1};
    semaphore_model model_{start_us};
    std::uint64_t steps_ = 0;
    std::uint64_t done_ = 0;  // steps that were not refused
    std::uint64_t messages_ = 0;

private:
    using words = std::vector<std::string>;
    struct asked {
        std::string what;
        sim::value modelled;
    };
    static constexpr const char* names[] = {"semaphore/acquire", "semaphore/release", "semaphore/renew",
                                            "semaphore/resize"};

    words to_command(const semaphore_step& step) const {
        const std::string sha1{wire::find(names[static_cast<std::size_t>(step.what)]).sha1};
        const std::string lease = std::to_string(step.lease_ms);
        if (step.what == kind::renew) {
            return {"EVALSHA", sha1, "3", keys_.lock, keys_.leases, keys_.grants, step.id, lease};
        }
        words all{"EVALSHA",
                  sha1,
                  "6",
                  keys_.lock,
                  keys_.queue,
                  keys_.waiters,
                  keys_.fence,
                  keys_.leases,
                  keys_.grants,
                  step.id,
                  std::to_string(step.retention_ms),
                  std::to_string(step.declared)};
        const auto add = [&](const words& more) { all.insert(all.end(), more.begin(), more.end()); };
        if (step.what == kind::acquire) {
            add({std::to_string(step.permits), lease, std::to_string(step.floor), step.channel, step.ticket,
                 std::to_string(step.interval_ms), std::to_string(step.keep_ms)});
        } else if (step.what == kind::release) {
            add({std::to_string(step.token)});
        } else {
            add({std::to_string(step.new_limit), step.replaces});
        }
        return all;
    }

    // Without what is always the same.
    std::string described(const semaphore_step& step, const words& command) const {
        std::string out = std::to_string(now_us_ - start_us) + ' ' + names[static_cast<std::size_t>(step.what)];
        for (std::size_t i = 3; i < command.size(); ++i) {
            if (!command[i].starts_with("hf:{")) out += ' ' + sim::in_quotes(command[i]);
        }
        return out;
    }

    std::string story() const {
        std::string out = "time " + std::to_string(now_us_) + " us; the last steps and the server's answers:\n";
        for (const auto& each : recent_) out += "  " + each + "\n";
        return out;
    }

    std::vector<asked> open_;
    bool just_moved_ = false;
    std::deque<std::string> recent_;
};

// --- every state by every step ---------------------------------------------------------------------------

class SemaphoreTable : public semaphore_comparison {
protected:
    struct state {
        const char* name;
        std::function<void()> make;
    };
    struct operation {
        const char* name;
        std::function<semaphore_step()> make;  // looks at the model for tokens and tickets
    };

    const std::string me = hold_id("me"), ann = hold_id("ann"), bob = hold_id("bob"), cid = hold_id("cid");

    static semaphore_step asks(const std::string& id, std::int64_t permits) { return {.id = id, .permits = permits}; }
    semaphore_step waits(const std::string& id, std::int64_t permits) const {
        semaphore_step step = asks(id, permits);
        step.channel = id == me ? "wake:a" : "wake:b";
        return step;
    }
    semaphore_step ends(const std::string& id) const {
        return {.what = kind::release, .id = id, .token = model_.token_of(id)};
    }
    semaphore_step resizes(std::int64_t to, const char* name = "v2") const {
        return {.what = kind::resize, .id = name, .new_limit = to, .replaces = model_.version()};
    }
    static semaphore_step for_a_second(semaphore_step step) {
        step.lease_ms = 1000;
        return step;
    }
    semaphore_step with_ticket(semaphore_step step) const {
        step.ticket = model_.ticket_of(step.id);
        return step;
    }
    static semaphore_step by_token(semaphore_step step, std::uint64_t token) {
        step.token = token;
        return step;
    }
    static semaphore_step declaring(semaphore_step step, std::int64_t limit) {
        step.declared = limit;
        return step;
    }
    void all(const std::vector<semaphore_step>& steps) {
        for (const semaphore_step& step : steps) give(step);
    }

    std::vector<state> states() {
        return {
            {"free", [] {}},
            {"another holds one", [this] { all({asks(ann, 1)}); }},
            {"another holds all", [this] { all({asks(ann, 4)}); }},
            {"two hold three",
             [this] {
                 all({asks(ann, 1), asks(bob, 2)});
             }},
            {"self holds one", [this] { all({asks(me, 1)}); }},
            {"self and another hold all",
             [this] {
                 all({asks(me, 2), asks(ann, 2)});
             }},
            {"self holds, others wait",
             [this] {
                 all({asks(me, 3), waits(ann, 3), waits(bob, 1)});
             }},
            {"large waits, small behind",
             [this] {
                 all({asks(ann, 3), waits(bob, 4), waits(cid, 1)});
             }},
            {"self waits for many, small behind",
             [this] {
                 all({asks(ann, 1), waits(me, 4), waits(bob, 1)});
             }},
            {"self waits for one behind many",
             [this] {
                 all({asks(ann, 1), waits(bob, 4), waits(me, 1)});
             }},
            {"two of one process wait",
             [this] {
                 all({asks(ann, 4), waits(bob, 1), waits(cid, 2), waits(me, 1)});
             }},
            {"another's lease is over", [this] { all({for_a_second(asks(ann, 3))}), pass(1001); }},
            {"another's lease is over among living",
             [this] {
                 all({for_a_second(asks(ann, 3)), asks(bob, 1)}), pass(1001);
             }},
            {"own lease is over among living",
             [this] {
                 all({for_a_second(asks(me, 3)), asks(bob, 1)}), pass(1001);
             }},
            {"lease over, waited for",
             [this] {
                 all({for_a_second(asks(ann, 4)), waits(bob, 3), waits(cid, 1)}), pass(1001);
             }},
            {"all leases over, self waits",
             [this] {
                 all({for_a_second(asks(ann, 4)), waits(me, 3)}), pass(1001);
             }},
            {"last ms of a lease", [this] { all({for_a_second(asks(ann, 4))}), pass(1000); }},
            {"dead waiter first",
             [this] {
                 semaphore_step deaf = asks(bob, 2);
                 deaf.channel = "wake:nobody";
                 all({asks(ann, 3), deaf, waits(cid, 1)});
             }},
            {"waiters that have not polled",
             [this] {
                 all({asks(ann, 3), waits(bob, 2), waits(cid, 1)}), pass(20'001);
             }},
            {"resized to more", [this] { all({resizes(6, "v1")}); }},
            {"resized to less, nobody holds", [this] { all({resizes(1, "v1")}); }},
            {"resized to less than is out",
             [this] {
                 all({asks(ann, 2), asks(bob, 2), resizes(2, "v1")});
             }},
            {"resized to less than is waited for",
             [this] {
                 all({asks(ann, 4), waits(bob, 3), waits(cid, 1), resizes(2, "v1")});
             }},
            {"resized to less than self waits for",
             [this] {
                 all({asks(ann, 4), waits(me, 3), resizes(2, "v1")});
             }},
            {"resized to more while others wait",
             [this] {
                 all({asks(ann, 4), waits(bob, 3), resizes(8, "v1")});
             }},
            {"resized, then nobody left",
             [this] {
                 all({asks(ann, 4), resizes(2, "v1")});
                 give(ends(ann));
             }},
            {"resized, and all leases over",
             [this] {
                 all({for_a_second(asks(ann, 4)), resizes(2, "v1")}), pass(1001);
             }},
            {"another limit is declared", [this] { all({declaring(asks(ann, 1), 7)}); }},
            {"another limit was declared, nobody holds", [this] { all({declaring(resizes(3, "v1"), 7)}); }},
            {"another limit is declared by the dead",
             [this] {
                 all({declaring(for_a_second(asks(ann, 1)), 7), asks(bob, 1)}), pass(1001);
             }},
            {"self holds, moved to a clock ahead", [this] { all({asks(me, 1)}), move_to_clock_ahead_by(300'000); }},
            {"waited for, moved to a clock ahead",
             [this] {
                 all({for_a_second(asks(ann, 4)), waits(bob, 1), waits(me, 2)});
                 move_to_clock_ahead_by(1500);
             }},
            {"some leases over, moved to a clock ahead",
             [this] {
                 all({for_a_second(asks(ann, 1)), asks(me, 1)});
                 pass(1001);
                 move_to_clock_ahead_by(2000);
             }},
        };
    }

    std::vector<operation> operations() {
        return {
            {"one", [this] { return asks(me, 1); }},
            {"all", [this] { return asks(me, 4); }},
            {"too many", [this] { return asks(me, 5); }},
            {"wait for one", [this] { return waits(me, 1); }},
            {"wait for all", [this] { return waits(me, 4); }},
            {"wait for too many", [this] { return waits(me, 9); }},
            {"poll for one", [this] { return with_ticket(waits(me, 1)); }},
            {"poll for three", [this] { return with_ticket(waits(me, 3)); }},
            {"one, declaring another limit", [this] { return declaring(asks(me, 1), 5); }},
            {"wait, declaring another limit", [this] { return declaring(waits(me, 1), 5); }},
            {"release", [this] { return ends(me); }},
            {"release another grant", [this] { return by_token(ends(me), 7); }},
            {"give up", [this] { return by_token(ends(me), 0); }},
            {"another one's release", [this] { return ends(ann); }},
            {"renew", [this] { return semaphore_step{.what = kind::renew, .id = me}; }},
            {"renew shorter", [this] { return semaphore_step{.what = kind::renew, .id = me, .lease_ms = 10}; }},
            {"resize to more", [this] { return resizes(8); }},
            {"resize to less", [this] { return resizes(2); }},
            {"resize to the same", [this] { return resizes(4); }},
            {"resize of another version",
             [this] {
                 semaphore_step step = resizes(8);
                 step.replaces = "v0";
                 return step;
             }},
            {"resize, declaring another limit", [this] { return declaring(resizes(8), 5); }},
            {"one, with a short memory",
             [this] {
                 semaphore_step step = asks(me, 1);
                 step.retention_ms = 70'000;
                 return step;
             }},
        };
    }
};

TEST_F(SemaphoreTable, EveryStepFromEveryStateIsAsTheModelHasIt) {  // R53
    for (const state& from : states()) {
        for (const operation& step : operations()) {
            SCOPED_TRACE(std::string{from.name} + ": " + step.name);
            start_again();
            from.make();
            ASSERT_NO_FATAL_FAILURE(compare());
            const semaphore_step request = step.make();
            give(request);
            ASSERT_NO_FATAL_FAILURE(compare());
            give(request);  // as after a lost reply
            ASSERT_NO_FATAL_FAILURE(compare());
            pass(10);
        }
    }
    EXPECT_GT(messages_, 50U);
}

// --- random sequences ------------------------------------------------------------------------------------

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t usual_steps = 20'000;
#else
constexpr std::uint64_t usual_steps = 100'000;
#endif

class SemaphoreRandom : public semaphore_comparison {
protected:
    static constexpr std::int64_t leases_ms[] = {500, 1000, 3000, 10'000};

    std::string any_id() { return ids_[random_.below(std::size(ids_))]; }
    std::string channel_of(const std::string& id) const {
        const auto index = std::find(std::begin(ids_), std::end(ids_), id) - std::begin(ids_);
        return index < 4 ? "wake:a" : index < 7 ? "wake:b" : "wake:nobody";
    }
    std::int64_t any_limit() { return random_.one_in(30) ? 5 : 4; }

    semaphore_step acquire() {
        semaphore_step step{.id = any_id(), .declared = any_limit()};
        step.permits = 1 + static_cast<std::int64_t>(random_.below(random_.one_in(3) ? 5 : 2));
        step.lease_ms = random_.pick(leases_ms);
        step.interval_ms = random_.one_in(2) ? 300 : 2000;
        step.keep_ms = 5000;
        step.retention_ms = random_.one_in(3) ? 1000 : 3'600'000;
        if (random_.one_in(10)) step.floor = static_cast<std::uint64_t>(now_us_) + random_.below(3000);
        if (!random_.one_in(4)) step.channel = channel_of(step.id);
        if (random_.one_in(2)) step.ticket = model_.ticket_of(step.id);
        if (random_.one_in(50))
            step.ticket = std::to_string(now_us_ - 5'000'000 + static_cast<int>(random_.below(5'000'000)));
        return step;
    }

    semaphore_step any_step() {
        const std::size_t die = random_.below(60);
        if (die < 30) return acquire();
        if (die < 50) {
            semaphore_step step{.what = kind::release, .id = any_id(), .declared = any_limit()};
            const std::uint64_t token = model_.token_of(step.id);
            step.token = random_.one_in(8) ? 0 : random_.one_in(8) ? token + 1 : token;
            return step;
        }
        if (die < 59) return {.what = kind::renew, .id = any_id(), .lease_ms = random_.pick(leases_ms)};
        semaphore_step step{.what = kind::resize, .id = "v" + std::to_string(++resizes_), .declared = any_limit()};
        if (random_.one_in(6)) step.id = "v" + std::to_string(resizes_ - 1);  // a copy
        step.new_limit = 1 + static_cast<std::int64_t>(random_.below(7));
        step.replaces = random_.one_in(5) ? "v" + std::to_string(resizes_ / 2) : model_.version();
        step.retention_ms = random_.one_in(2) ? 20'000 : 3'600'000;
        return step;
    }

    void move_time() {
        static constexpr std::int64_t steps_ms[] = {0, 0, 0, 10, 100, 300, 500, 1000, 3000};
        const std::int64_t ms = random_.one_in(40) ? 25'000 : random_.pick(steps_ms);
        pass_us(ms * 1000 + static_cast<std::int64_t>(random_.below(1000)));
    }

    const std::uint64_t total_ = from_environment("HOLDFAST_SEMAPHORE_STEPS", usual_steps);
    const std::uint64_t seed_ = from_environment("HOLDFAST_SEMAPHORE_SEED", 20261119);
    sim::random_source random_{seed_};
    std::uint64_t resizes_ = 0;
    const std::string ids_[8] = {hold_id("a1"), hold_id("a2"), hold_id("a3"), hold_id("a4"),
                                 hold_id("b1"), hold_id("b2"), hold_id("b3"), hold_id("deaf")};
};

TEST_F(SemaphoreRandom, StepsAreAsTheModelHasThem) {  // R53
    while (steps_ < total_) {
        for (std::size_t left = 1 + random_.below(24); left > 0; --left) give(any_step());
        ASSERT_NO_FATAL_FAILURE(compare()) << "seed " << seed_;
        move_time();
        if (random_.one_in(20)) move_to_clock_ahead_by(10 * static_cast<std::int64_t>(1 + random_.below(1000)));
    }
    EXPECT_GT(done_ * 4, steps_) << "too many refusals to mean much";
    EXPECT_GT(messages_ * 100, steps_) << "too few were let in from the queue to mean much";
}

}  // namespace
}  // namespace holdfast::testing::semaphore_model_test
