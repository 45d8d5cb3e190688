// The read-write scripts on a real server do what the model does: from every state by every step, and in long random
// sequences. HOLDFAST_RW_SEED and HOLDFAST_RW_STEPS replay and lengthen the random sequences.
#include <cstdlib>
#include <functional>

#include "script/rw/rw_comparison.hpp"
#include "script/rw/rw_rows.hpp"
#include "server_model/differential/command_maker.hpp"

namespace holdfast::testing::rw_model_test {
namespace {

const char* const preferences[] = {"arrival", "readers", "writers"};

// --- every state by every step ---------------------------------------------------------------------------

class RwTable : public rw_comparison {
protected:
    struct state {
        const char* name;
        std::function<void()> make;
    };
    struct operation {
        const char* name;
        std::function<rw_step()> make;  // looks at the model for tokens and tickets
    };

    const std::string me = hold_id("me"), ann = hold_id("ann"), bob = hold_id("bob"), cid = hold_id("cid");
    const std::string foreign_id = "0b2e-4c1d";
    const char* prefer = "arrival";

    rw_step asks(const std::string& id, char wants) const {
        return {.id = id, .wants = wants, .prefer = prefer, .token = model_.token_of(id)};
    }
    rw_step waits(const std::string& id, char wants) const {
        rw_step step = asks(id, wants);
        step.channel = id == me ? "wake:a" : "wake:b";
        return step;
    }
    rw_step ends(const std::string& id, const char* left_over) const {
        return {
            .what = kind::release, .id = id, .prefer = prefer, .token = model_.token_of(id), .left_over = left_over};
    }
    rw_step foreign(kind what, std::int64_t ttl) const { return {.what = what, .id = foreign_id, .lease_ms = ttl}; }
    rw_step for_a_second(rw_step step) const {
        step.lease_ms = 1000;
        return step;
    }
    rw_step with_ticket(rw_step step) const {
        step.ticket = model_.ticket_of(step.id);
        return step;
    }
    rw_step by_token(rw_step step, std::uint64_t token) const {
        step.token = token;
        return step;
    }

    void both(const std::vector<rw_step>& steps) {
        for (const rw_step& step : steps) give(step);
    }
    void reads(const std::string& id) { give(asks(id, 'r')); }
    void writes(const std::string& id) { give(asks(id, 'w')); }

    std::vector<state> states() {
        return {
            {"free", [] {}},
            {"one reader", [this] { reads(ann); }},
            {"several readers",
             [this] {
                 both({asks(ann, 'r'), asks(bob, 'r')});
             }},
            {"self reads", [this] { reads(me); }},
            {"self and others read",
             [this] {
                 both({asks(me, 'r'), asks(ann, 'r')});
             }},
            {"writer", [this] { writes(ann); }},
            {"self writes", [this] { writes(me); }},
            {"self writes and reads",
             [this] {
                 both({asks(me, 'w'), asks(me, 'r')});
             }},
            {"self upgraded", [this] { reads(me), give(asks(me, 'u')); }},
            {"expired reader", [this] { give(for_a_second(asks(ann, 'r'))), pass(1001); }},
            {"expired reader among living", [this] { give(for_a_second(asks(ann, 'r'))), reads(bob), pass(1001); }},
            {"expired self among living", [this] { give(for_a_second(asks(me, 'r'))), reads(bob), pass(1001); }},
            {"expired other beside self", [this] { give(for_a_second(asks(ann, 'r'))), reads(me), pass(1001); }},
            {"expired writer", [this] { give(for_a_second(asks(ann, 'w'))), pass(1001); }},
            {"expired writer, waited for",
             [this] {
                 give(for_a_second(asks(ann, 'w')));
                 both({waits(bob, 'r'), waits(cid, 'w')});
                 pass(1001);
             }},
            {"last ms of a lease", [this] { give(for_a_second(asks(ann, 'w'))), pass(1000); }},
            {"waiting writer",
             [this] {
                 both({asks(ann, 'r'), waits(bob, 'w')});
             }},
            {"waiting writer, self reads",
             [this] {
                 both({asks(me, 'r'), waits(bob, 'w')});
             }},
            {"waiting writer, readers behind",
             [this] {
                 both({asks(ann, 'r'), waits(bob, 'w'), waits(cid, 'r')});
             }},
            {"self waits to write",
             [this] {
                 both({asks(ann, 'r'), waits(me, 'w'), waits(bob, 'r')});
             }},
            {"self waits to read",
             [this] {
                 both({asks(ann, 'w'), waits(bob, 'r'), waits(me, 'r'), waits(cid, 'w')});
             }},
            {"dead writer waits",
             [this] {
                 rw_step deaf = asks(bob, 'w');
                 deaf.channel = "wake:nobody";
                 both({asks(ann, 'r'), deaf, waits(cid, 'r')});
             }},
            {"writer waits that has not polled",
             [this] {
                 both({asks(ann, 'r'), waits(bob, 'w'), waits(cid, 'r')}), pass(20'001);
             }},
            {"waiting upgrader",
             [this] {
                 both({asks(ann, 'r'), asks(bob, 'r')}), give(waits(ann, 'u'));
             }},
            {"waiting upgrader, self reads",
             [this] {
                 both({asks(ann, 'r'), asks(me, 'r')}), give(waits(ann, 'u'));
             }},
            {"self waits to upgrade",
             [this] {
                 both({asks(ann, 'r'), asks(me, 'r')}), give(waits(me, 'u'));
             }},
            {"self waits to upgrade, alone now",
             [this] { give(for_a_second(asks(ann, 'r'))), reads(me), give(waits(me, 'u')), pass(1001); }},
            {"upgrader's lease over in the queue",
             [this] { give(for_a_second(asks(me, 'r'))), reads(ann), give(waits(me, 'u')), pass(1001); }},
            {"foreign reader", [this] { give(foreign(kind::foreign_read, 30'005)); }},
            {"foreign reader beside self", [this] { reads(me), give(foreign(kind::foreign_read, 30'005)); }},
            {"foreign reader's time is over",
             [this] { reads(me), give(foreign(kind::foreign_read, 5005)), give(asks(ann, 'r')), pass(5006); }},
            {"foreign writer", [this] { give(foreign(kind::foreign_write, 30'005)); }},
            {"foreign writer after our hash was lost",
             [this] {
                 reads(me);
                 both({foreign(kind::foreign_read, 1005), foreign(kind::foreign_stop_reading, 0)});
                 pass(1006);
                 give(foreign(kind::foreign_write, 30'005));
             }},
            {"hash lost, self wrote",
             [this] {
                 writes(me);
                 compare();
                 server_.link().call({"PEXPIRE", keys_.lock, "0"});
                 model_.lose_hash();
             }},
            {"self reads, moved to a clock ahead", [this] { reads(me), move_to_clock_ahead_by(300'000); }},
            {"writer, waited for, moved to a clock ahead",
             [this] {
                 both({for_a_second(asks(ann, 'w')), waits(bob, 'r'), waits(me, 'w')});
                 move_to_clock_ahead_by(1500);
             }},
            {"some leases over, moved to a clock ahead",
             [this] {
                 both({for_a_second(asks(ann, 'r')), asks(me, 'r')});
                 pass(1001);
                 move_to_clock_ahead_by(2000);
             }},
            {"foreign reader beside self, moved to a clock ahead",
             [this] {
                 both({asks(me, 'r'), foreign(kind::foreign_read, 30'005), asks(ann, 'r')});
                 move_to_clock_ahead_by(100'000);
             }},
        };
    }

    std::vector<operation> operations() {
        return {
            {"read", [this] { return asks(me, 'r'); }},
            {"wait to read", [this] { return waits(me, 'r'); }},
            {"poll to read", [this] { return with_ticket(waits(me, 'r')); }},
            {"write", [this] { return asks(me, 'w'); }},
            {"wait to write", [this] { return waits(me, 'w'); }},
            {"poll to write", [this] { return with_ticket(waits(me, 'w')); }},
            {"upgrade", [this] { return asks(me, 'u'); }},
            {"wait to upgrade", [this] { return waits(me, 'u'); }},
            {"poll to upgrade", [this] { return with_ticket(waits(me, 'u')); }},
            {"upgrade another grant", [this] { return by_token(waits(me, 'u'), 7); }},
            {"release", [this] { return ends(me, ""); }},
            {"release another grant", [this] { return by_token(ends(me, ""), 7); }},
            {"give up", [this] { return by_token(ends(me, ""), 0); }},
            {"downgrade", [this] { return ends(me, "r"); }},
            {"downgrade another grant", [this] { return by_token(ends(me, "r"), 7); }},
            {"stop reading", [this] { return ends(me, "w"); }},
            {"renew", [this] { return rw_step{.what = kind::renew, .id = me, .prefer = prefer}; }},
            {"renew shorter",
             [this] { return rw_step{.what = kind::renew, .id = me, .prefer = prefer, .lease_ms = 10}; }},
            {"cancel", [this] { return rw_step{.what = kind::cancel, .id = me, .prefer = prefer}; }},
            {"another one's release", [this] { return ends(ann, ""); }},
        };
    }
};

TEST_F(RwTable, EveryStepFromEveryStateIsAsTheModelHasIt) {  // R20-R33
    for (const char* preference : preferences) {
        for (const state& from : states()) {
            for (const operation& step : operations()) {
                SCOPED_TRACE(std::string{preference} + ": " + from.name + ": " + step.name);
                prefer = preference;
                start_again();
                from.make();
                ASSERT_NO_FATAL_FAILURE(compare());
                const rw_step request = step.make();
                give(request);
                ASSERT_NO_FATAL_FAILURE(compare());
                give(request);  // as after a lost reply
                ASSERT_NO_FATAL_FAILURE(compare());
                pass(10);
            }
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

class RwRandom : public rw_comparison {
protected:
    enum class company { ours, foreign_too };

    // Our deadlines are whole hundredths of a second and foreign expiries are not: so the two never coincide, which the
    // scripts could not tell apart.
    static constexpr std::int64_t leases_ms[] = {500, 1000, 3000, 10'000};
    static constexpr std::int64_t foreign_ttls_ms[] = {205, 1005, 3005, 10'005};

    std::string any_id() { return ids_[random_.below(std::size(ids_))]; }
    std::string channel_of(const std::string& id) const {
        const auto index = std::find(std::begin(ids_), std::end(ids_), id) - std::begin(ids_);
        return index < 3 ? "wake:a" : index < 5 ? "wake:b" : "wake:nobody";
    }
    std::uint64_t any_token(const std::string& id) {
        const std::uint64_t token = model_.token_of(id);
        if (random_.one_in(8)) return 0;
        return random_.one_in(8) ? token + 1 : token;
    }

    rw_step acquire() {
        rw_step step{.id = any_id(), .wants = "rrrwwu"[random_.below(6)]};
        step.lease_ms = random_.pick(leases_ms);
        step.interval_ms = random_.one_in(2) ? 300 : 2000;
        step.keep_ms = 5000;
        step.retention_ms = random_.one_in(3) ? 1000 : 3'600'000;
        if (random_.one_in(10)) step.floor = static_cast<std::uint64_t>(now_us_) + random_.below(3000);
        if (!random_.one_in(4)) step.channel = channel_of(step.id);
        if (random_.one_in(2)) step.ticket = model_.ticket_of(step.id);
        if (random_.one_in(50))
            step.ticket = std::to_string(now_us_ - 5'000'000 + static_cast<int>(random_.below(5'000'000)));
        step.token = any_token(step.id);
        return step;
    }

    rw_step ours() {
        const std::size_t die = random_.below(10);
        if (die < 5) return acquire();
        rw_step step{.what = die < 8 ? kind::release : die < 9 ? kind::renew : kind::cancel, .id = any_id()};
        step.lease_ms = random_.pick(leases_ms);
        step.token = any_token(step.id);
        if (random_.one_in(2)) step.left_over = random_.one_in(3) ? "w" : "r";
        return step;
    }

    rw_step foreign() {
        rw_step step{.what = static_cast<kind>(static_cast<std::size_t>(kind::foreign_read) + random_.below(6))};
        step.id = random_.one_in(2) ? "b7c0-1d" : "42";
        step.lease_ms = random_.pick(foreign_ttls_ms);
        return step;
    }

    void move_time() {
        static constexpr std::int64_t steps_ms[] = {0, 0, 0, 10, 100, 300, 500, 1000, 3000};
        const std::int64_t ms = random_.one_in(60) ? 15'000 : random_.pick(steps_ms);
        const std::int64_t within = now_us_ % 1000;
        const std::int64_t least = ms == 0 ? within : 0;
        pass_us(ms * 1000 - within + least +
                static_cast<std::int64_t>(random_.below(1000 - static_cast<std::size_t>(least))));
    }

    void play(std::uint64_t steps, company who, const char* prefer) {
        while (steps_ < steps) {
            for (std::size_t left = 1 + random_.below(24); left > 0; --left) {
                const bool is_foreign = who == company::foreign_too && !just_moved() && random_.one_in(5);
                rw_step step = is_foreign ? foreign() : ours();
                step.prefer = prefer == nullptr ? random_.pick(preferences) : prefer;
                give(step);
            }
            ASSERT_NO_FATAL_FAILURE(compare()) << "seed " << seed_;
            move_time();
            if (random_.one_in(20)) move_to_clock_ahead_by(10 * static_cast<std::int64_t>(1 + random_.below(1000)));
        }
        EXPECT_GT(done_ * 4, steps_) << "too many refusals to mean much";
        EXPECT_GT(messages_ * 100, steps_) << "too few were let in from the queue to mean much";
    }

    const std::uint64_t total_ = from_environment("HOLDFAST_RW_STEPS", usual_steps);
    const std::uint64_t seed_ = from_environment("HOLDFAST_RW_SEED", 20261116);
    sim::random_source random_{seed_};
    const std::string ids_[6] = {hold_id("a1"), hold_id("a2"), hold_id("a3"),
                                 hold_id("b1"), hold_id("b2"), hold_id("deaf")};
};

TEST_F(RwRandom, ArrivalOrderIsAsTheModelHasIt) {  // R30
    play(total_ / 5, company::ours, "arrival");
}
TEST_F(RwRandom, ReaderPreferenceIsAsTheModelHasIt) {  // R30
    play(total_ / 5, company::ours, "readers");
}
TEST_F(RwRandom, WriterPreferenceIsAsTheModelHasIt) {  // R30
    play(total_ / 5, company::ours, "writers");
}
TEST_F(RwRandom, WithOtherProgramsOnTheKeyIsAsTheModelHasIt) {  // R33
    play(total_ * 2 / 5, company::foreign_too, nullptr);
}

}  // namespace
}  // namespace holdfast::testing::rw_model_test
