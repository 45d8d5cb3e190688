// The order of the events that `holdfast watch` finds between two looks.
#include "cli/inspect/locks/lock_events.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::cli::lock_events_test {
namespace {

using namespace std::chrono_literals;

lock_state seen(std::chrono::seconds at) {
    lock_state lock({wire::lock_name("a"), wire::key_naming::tagged, "hf:"});
    lock.server_time = at;
    return lock;
}

lock_holder held_by(std::string id, std::uint64_t token, std::chrono::milliseconds held, access mode) {
    return {{.id = std::move(id), .mode = mode, .token = token, .held = held, .left = 30s}, {}};
}

lock_waiter waiting(std::string id, std::chrono::milliseconds waited) {
    return {{.id = std::move(id), .waited = waited}, {}};
}

std::vector<std::string> names_of(const std::vector<lock_event>& events) {
    std::vector<std::string> names;
    for (const lock_event& event : events) names.push_back(std::string(name_of(event.what)) + " " + event.id);
    return names;
}

TEST(LockEvents, ComeInTheOrderOfTheirTimes) {
    lock_state before = seen(100s);
    before.holders = {held_by("1", 7, 10s, access::exclusive)};
    before.waiters = {waiting("2", 3s)};
    lock_state now = seen(101s);
    now.holders = {held_by("2", 8, 400ms, access::exclusive)};  // since 100.6 s
    now.waiters = {waiting("3", 900ms), waiting("4", 100ms)};   // since 100.1 s and 100.9 s
    now.fence = 8;
    const std::vector<lock_event> events = events_between(before, now);
    EXPECT_EQ(names_of(events), (std::vector<std::string>{"waiting 3", "released 1", "handed over 2", "waiting 4"}));
    EXPECT_TRUE(std::ranges::is_sorted(events, {}, &lock_event::when));
    // The end is no later than the grant that it made room for, and the hold no longer than that.
    EXPECT_EQ(events[1].when, 100'600ms);
    EXPECT_EQ(events[1].held, 10'600ms);
}

TEST(LockEvents, AReaderThatEndsIsNotTakenToMakeRoomForAnother) {
    lock_state before = seen(100s);
    before.holders = {held_by("1", 7, 10s, access::read)};
    lock_state now = seen(101s);
    now.holders = {held_by("2", 8, 400ms, access::read)};
    now.fence = 8;
    EXPECT_EQ(names_of(events_between(before, now)), (std::vector<std::string>{"acquired 2", "released 1"}));
}

}  // namespace
}  // namespace holdfast::cli::lock_events_test
