// The fast path of the read-write scripts beside the general path, in random sequences: see rw_both_paths.hpp.
#include <cstdlib>

#include "script/rw/rw_both_paths.hpp"

namespace holdfast::testing::rw_fast_path_random_test {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class RwFastPathRandom : public both_paths {
protected:
    std::string any_number() {
        static const std::string odd[] = {
            "", "0", "-1", "007", "1e3", "0x10", "x", "9007199254740991", "9007199254740992"};
        return random_.pick(odd);
    }

    outcome acquire() {
        static constexpr std::int64_t lives_ms[] = {20, 500, 3000, 10'000};
        words all = to_acquire(random_.pick(ids_),
                               random_.one_in(6)    ? "w"
                               : random_.one_in(12) ? "u"
                                                    : "r",
                               random_.pick(lives_ms));
        if (random_.one_in(8)) all[6] = "wake:nobody";
        if (random_.one_in(10)) all[5] = text(now_us_ - 50 + static_cast<int>(random_.below(100)));
        if (random_.one_in(5)) all[11] = text(now_us_ - 1'100'000 + static_cast<int>(random_.below(2'200'000)));
        if (random_.one_in(5)) all[12] = tokens_[all[0]];
        if (all[3] == "u") all[10] = tokens_[all[0]];
        if (random_.one_in(30)) all[1 + random_.below(12)] = any_number();
        return give("rw/acquire", all);
    }
    outcome release() {
        words all = to_release(random_.pick(ids_));
        if (random_.one_in(12)) all[3] = "0";
        if (random_.one_in(12)) all[4] = random_.one_in(2) ? "r" : "w";
        if (random_.one_in(30)) all[1 + random_.below(6)] = any_number();
        return give("rw/release", all);
    }
    void disturb() {
        const std::string id = random_.pick(ids_);
        const std::string some_ms = text(static_cast<std::int64_t>(1 + random_.below(4000)));
        const std::vector<std::function<void()>> all = {
            [&] { foreign(foreign_rw::lock_to_read, 1 + static_cast<std::int64_t>(random_.below(4000))); },
            [&] { foreign(foreign_rw::unlock_from_reading, 1000); },
            [&] { foreign(foreign_rw::lock_to_write, 1005); },
            [&] { foreign(foreign_rw::unlock_from_writing, 1005); },
            [&] {
                tell({"PEXPIRE", random_.one_in(2) ? lock : leases, some_ms});
            },
            [&] {
                tell({"PEXPIREAT", lock, text(tell({"PEXPIRETIME", lock}).integer + (random_.one_in(2) ? 1 : -1))});
            },
            [&] {
                tell({"PERSIST", random_.one_in(2) ? lock : grants});
            },
            [&] {
                tell({"DEL", random_.one_in(3) ? lock : random_.one_in(2) ? leases : grants});
            },
            [&] {
                tell({"ZREM", leases, id});
            },
            [&] {
                tell({"HDEL", grants, id});
            },
            [&] {
                tell({"HDEL", lock, "r:" + id});
            },
            [&] {
                tell({"SET", fence, random_.one_in(2) ? "none" : text(now_us_ + 20)});
            },
            [&] { moves_to_clock_ahead_by(random_.one_in(2) ? 700 : -700); },
        };
        random_.pick(all)();
    }

    sim::random_source random_{from_environment("HOLDFAST_RW_SEED", 20261117)};
    const std::string ids_[5] = {hold_id("a1"), hold_id("a2"), hold_id("a3"), hold_id("b1"), hold_id("b2")};
};

TEST_F(RwFastPathRandom, DoesWhatTheGeneralPathDoes) {  // R20-R33, R45
    const std::uint64_t steps = from_environment("HOLDFAST_RW_STEPS", 100'000) / 40;
    std::uint64_t acquired = 0, released = 0;
    static constexpr std::int64_t pauses_us[] = {0, 0, 1, 700, 1000, 9'000, 20'000, 300'000, 600'000};
    for (std::uint64_t step = 0; step < steps; ++step) {
        if (random_.one_in(40)) start_again();
        SCOPED_TRACE("step " + std::to_string(step));
        if (random_.one_in(12)) disturb();
        if (random_.one_in(25)) give("rw/renew", {random_.pick(ids_), "3600000", "arrival", "3000", "0"});
        const bool is_full = random_.one_in(25);
        if (is_full) server_is_full();
        if (random_.one_in(2)) {
            acquired += acquire().taken == path::fast ? 1U : 0U;
        } else {
            released += release().taken == path::fast ? 1U : 0U;
        }
        if (is_full) tell({"CONFIG", "SET", "maxmemory", "0"});
        ASSERT_FALSE(HasFailure());
        pass_us(random_.pick(pauses_us));
    }
    EXPECT_GT(acquired * 10, steps) << "too few to mean much";
    EXPECT_GT(released * 20, steps) << "too few to mean much";
}

}  // namespace
}  // namespace holdfast::testing::rw_fast_path_random_test
