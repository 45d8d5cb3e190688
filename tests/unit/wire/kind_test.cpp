// The table of kinds: each kind writes what it says it can write.
#include "wire/kind.hpp"

#include <gtest/gtest.h>

#include "unit/redis/session/command_bytes.hpp"
#include "unit/redis/session/recorded_command.hpp"
#include "wire/scripts.hpp"

namespace holdfast::wire::kind_test {
namespace {

std::string folder_of(lock_kind kind) {
    constexpr const char* folders[] = {"mutex/", "rw/", "semaphore/"};
    return folders[static_cast<std::size_t>(kind)];
}

class Kinds : public ::testing::TestWithParam<lock_kind> {
protected:
    template <class Request>
    void expect(const char* script, const Request& request) {
        redis::testing::event_log log;
        redis::testing::recorded_command out(log, "request");
        write(out, {.keys = keys_, .kind = GetParam()}, request);
        EXPECT_EQ(out.source(), &find(folder_of(GetParam()) + script));
    }

    const lock_keys keys_ = make_keys(lock_name("stock"), key_naming::tagged, default_prefix);
};

TEST_P(Kinds, SendTheScriptsOfTheirFolder) {
    const kind& subject = kind_of(GetParam());
    expect("acquire", acquire_request{.id = "me", .lease = milliseconds(1), .channel = {}, .ticket = {}});
    expect("release", release_request{.id = "me"});
    expect("renew", renew_request{.id = "me", .lease = milliseconds(1)});
    expect("confirm", confirm_request{.id = "me"});
    if (subject.can_release_alone()) expect("release_alone", release_alone_request{.id = "me"});
    if (subject.can_renew_alone()) expect("renew_alone", renew_alone_request{.id = "me", .lease = milliseconds(1)});
    if (subject.has_shared_mode()) expect("cancel", cancel_request{.id = "me"});
    if (GetParam() == lock_kind::semaphore) return;  // on one server alone, and never kept
    expect(GetParam() == lock_kind::mutex ? "renew_block" : "renew",
           renew_block_request{.id = "me", .lease = milliseconds(1)});
    expect("raise", raise_request{.id = "me"});
}

TEST_P(Kinds, AreInTheTableAtTheirPlace) {
    EXPECT_EQ(all_kinds()[static_cast<std::size_t>(GetParam())], &kind_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, Kinds, ::testing::Values(lock_kind::mutex, lock_kind::read_write, lock_kind::semaphore));

TEST(Kind, OnlyTheReadWriteLockIsShared) {
    EXPECT_FALSE(kind_of(lock_kind::mutex).has_shared_mode());
    EXPECT_FALSE(kind_of(lock_kind::semaphore).has_shared_mode());
    EXPECT_TRUE(kind_of(lock_kind::read_write).has_shared_mode());
}

}  // namespace
}  // namespace holdfast::wire::kind_test
