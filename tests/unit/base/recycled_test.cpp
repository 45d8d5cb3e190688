// Blocks that are kept for the next of their size. Under the address sanitizer none are, and all of this holds as well.
#include "base/recycled.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace holdfast::recycled_test {
namespace {

// A size of its own for each test: what one keeps is not to be found by another.
TEST(Recycled, TheLastBlockThatWasGivenBackIsTheNextThatIsTaken) {
    using blocks = recycled<1001>;
    void* const first = blocks::take();
    blocks::give_back(first);
    void* const second = blocks::take();
    EXPECT_TRUE(!blocks_are_kept || first == second);
    blocks::give_back(second);
}

TEST(Recycled, NoBlockIsTakenTwice) {
    using blocks = recycled<1002>;
    constexpr std::size_t more_than_are_kept = 200;
    for (int round = 0; round < 3; ++round) {
        std::set<void*> taken;
        for (std::size_t i = 0; i < more_than_are_kept; ++i) {
            void* const block = blocks::take();
            std::memset(block, 0xa5, 1002);
            EXPECT_TRUE(taken.insert(block).second);
        }
        for (void* const each : taken) blocks::give_back(each);
    }
}

TEST(Recycled, AnotherThreadMayGiveABlockBackAndThenHasIt) {
    using blocks = recycled<1003>;
    void* const ours = blocks::take();
    std::thread([&] {
        blocks::give_back(ours);
        void* const theirs = blocks::take();
        EXPECT_TRUE(!blocks_are_kept || theirs == ours);
        blocks::give_back(theirs);
    }).join();
    blocks::give_back(blocks::take());
}

// Whatever a thread gives back when it ends, after what it kept has gone.
TEST(Recycled, AThreadThatEndsMayStillGiveBack) {
    using blocks = recycled<1004>;
    struct late {
        ~late() { blocks::give_back(block); }
        void* block = nullptr;
    };
    std::thread([] {
        static thread_local late last;  // made before what is kept, hence destroyed after it
        last.block = blocks::take();
        blocks::give_back(blocks::take());
    }).join();
}

TEST(Recycled, SharedObjectsAreMadeOfThem) {
    struct object {
        std::uint64_t numbers[40];
    };
    const auto make = [] { return std::allocate_shared<object>(recycling_allocator<object>()); };
    const void* const first = make().get();
    const auto second = make();
    EXPECT_TRUE(!blocks_are_kept || first == second.get());
    std::vector<std::uint64_t, recycling_allocator<std::uint64_t>> several(100, 7);
    EXPECT_EQ(several.back(), 7U);
}

}  // namespace
}  // namespace holdfast::recycled_test
