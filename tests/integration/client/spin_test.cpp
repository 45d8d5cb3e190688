// A caller looks for its answer before it sleeps; nobody else takes processor time for that.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <holdfast/holdfast.hpp>

#include <chrono>
#include <thread>

#include "support/redis_server.hpp"

namespace holdfast::testing::spin_test {
namespace {

using namespace std::chrono_literals;

std::chrono::microseconds processor_time() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto of = [](const timeval& time) {
        return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

long switches_of_this_process() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
}

long switches_of_this_thread() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return used.ru_nvcsw;
}

client make(const redis_server& server, std::optional<std::chrono::microseconds> spin) {
    client_options options;
    options.spin = spin;
    return client{server.url(), options};
}

TEST(Spin, AnIdleClientTakesNoProcessorTime) {
    redis_server server;
    for (const auto& spin :
         {std::optional<std::chrono::microseconds>{}, std::optional(std::chrono::microseconds(10'000))}) {
        client subject = make(server, spin);
        mutex lock{subject, "some"};
        for (int i = 0; i < 100; ++i) const lease held = lock.acquire();
        std::this_thread::sleep_for(50ms);
        const auto before = processor_time();
        std::this_thread::sleep_for(500ms);
        EXPECT_LT(processor_time() - before, 50ms);
    }
}

// The loop's own thread looks at the clock every 10 ms while callers come and go, and is not woken otherwise.
TEST(Spin, TheBackgroundThreadIsNotWokenForTheAnswersOfPostedReleases) {
    redis_server server;
    client subject = make(server, {});
    mutex lock{subject, "some"};
    for (int i = 0; i < 100; ++i) const lease held = lock.acquire();
    const auto began = std::chrono::steady_clock::now();
    const long before = switches_of_this_process() - switches_of_this_thread();
    for (int i = 0; i < 3000; ++i) const lease held = lock.acquire();
    const long others = switches_of_this_process() - switches_of_this_thread() - before;
    const auto took = std::chrono::steady_clock::now() - began;
    EXPECT_LT(others, 20 + took / 2ms);
}

TEST(Spin, LocksWorkWithoutLookingAndWithAnyFixedTime) {
    redis_server server;
    for (const auto spin : {0us, 50us, 10'000us}) {
        client subject = make(server, spin);
        mutex lock{subject, "some"};
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(lock.try_acquire());
    }
}

TEST(Spin, AnUnreasonableTimeIsRefused) {
    for (const auto spin : {-1us, 10'001us}) {
        client_options options;
        options.spin = spin;
        try {
            client refused{"redis://127.0.0.1:1", options};
            FAIL();
        } catch (const error& why) {
            EXPECT_EQ(why.code(), make_error_code(errc::bad_option));
            EXPECT_NE(std::string(why.what()).find("spin"), std::string::npos);
        }
    }
}

}  // namespace
}  // namespace holdfast::testing::spin_test
