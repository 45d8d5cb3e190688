// Processes that keep a lock, and are killed or stopped while they use it, keep it or wait for it: R50, R51, R52. Short
// by default; HOLDFAST_CHAOS_SECONDS makes it longer.
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <thread>

#include "chaos/beliefs.hpp"

namespace holdfast::testing::kept_test {
namespace {

using namespace std::chrono_literals;

class Keepers : public chaos_fixture {
protected:
    std::unique_ptr<worker> start() {
        return std::make_unique<worker>(
            std::vector<std::string>{"crowd", server.url(), "dear", "2", "600", "600", "trusted", "4", "keeps"});
    }
    // Of the first of the two locks.
    void collect(const worker& one) {
        for (const told_line& line : one.lines("interval")) {
            if (line.at(1) != "dear0") continue;
            all.push_back({to_number(line.at(2)), to_number(line.at(3)), to_number(line.at(4))});
        }
    }

    std::vector<interval> all;
};

TEST_F(Keepers, ThatDieOrHangNeverShareALockWithAnother) {
    std::vector<std::unique_ptr<worker>> crew;
    for (int i = 0; i < 4; ++i) crew.push_back(start());
    const auto end = now_us() + std::stoll(seconds_to_run("5")) * 1'000'000;
    for (std::size_t turn = 0; now_us() < end; ++turn) {
        std::unique_ptr<worker>& victim = crew[turn % crew.size()];
        std::this_thread::sleep_for(400ms);
        if (turn % 2 == 0) {
            victim->signal(SIGSTOP);
            std::this_thread::sleep_for(900ms);  // longer than its lease
            victim->signal(SIGCONT);
        } else {
            victim->signal(SIGKILL);
            victim->process().wait(an_age);
            collect(*victim);
            victim = start();
        }
    }
    for (auto& each : crew) each->process().close_input();
    for (auto& each : crew) {
        EXPECT_EQ(each->finish(), went_well) << each->process().errors();
        collect(*each);
    }
    std::ranges::sort(all, {}, &interval::from_us);
    EXPECT_GT(all.size(), 20U);
    for (std::size_t i = 1; i < all.size(); ++i) {
        EXPECT_GE(all[i].from_us, all[i - 1].to_us) << "two believed at once";
        EXPECT_GT(all[i].token, all[i - 1].token);
    }
}

}  // namespace
}  // namespace holdfast::testing::kept_test
