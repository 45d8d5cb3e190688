// The last lease of a client that is gone already, dropped inside the library by a program that ends: its release is
// still seen through.
#include <gtest/gtest.h>

#include <chrono>

#include "integration/refusal.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::last_lease_test {
namespace {

using namespace std::chrono_literals;

class LastLease : public ::testing::Test {
protected:
    bool is_held() { return server.call({"EXISTS", "hf:{stock}"}).integer == 1; }
    bool is_granted() {
        return eventually([&] { return program.output() == "granted\n"; }, an_age);
    }

    redis_server server;
    tcp_proxy link{server.port()};
    child_process program{HOLDFAST_LEAVER, {.arguments = {link.url() + "?timeout=9s"}, .after_input = input_end::open}};
};

TEST_F(LastLease, IsReleasedByAProgramThatEnds) {
    ASSERT_TRUE(is_granted());
    EXPECT_TRUE(is_held());
    program.write_input("\n");
    EXPECT_EQ(program.wait(an_age), exit_result{.status = 0});
    EXPECT_TRUE(eventually([&] { return !is_held(); }, an_age));
}

TEST_F(LastLease, IsReleasedByAProgramThatEndsThoughItsLinkBreaks) {
    ASSERT_TRUE(is_granted());
    link.stall(direction::to_server);
    program.write_input("\n");
    EXPECT_EQ(program.wait_for(300ms), std::nullopt) << "nobody has heard of the release yet";
    link.cut();
    ASSERT_TRUE(is_held()) << "it was lost with the link";
    link.unstall(direction::to_server);
    EXPECT_EQ(program.wait(an_age), exit_result{.status = 0});
    EXPECT_FALSE(is_held());
}

}  // namespace
}  // namespace holdfast::testing::last_lease_test
