// Compares our reader with that of hiredis on RESP2: valid and damaged bytes, in random pieces.
//
// Both must give the same replies, up to the first fault. `deliberate_difference` lists the intended differences:
// hiredis 0.14 is less strict there, or older than RESP3.
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <memory>

#include "unit/redis/resp/resp_random.hpp"

namespace holdfast::redis::resp_hiredis_test {
namespace {

using namespace testing;

// hiredis builds our trees: its own replies would reserve memory for damaged lengths.
tree* address(const redisReadTask* task, tree value) {
    if (task->parent == nullptr) return new tree{std::move(value)};
    auto* const parent = static_cast<tree*>(task->parent->obj);
    parent->children.push_back(std::move(value));
    return &parent->children.back();  // valid until it is complete: the parent does not grow before
}

void* create_string(const redisReadTask* task, char* bytes, std::size_t length) {
    const resp_type type = task->type == REDIS_REPLY_STATUS  ? resp_type::simple_string
                           : task->type == REDIS_REPLY_ERROR ? resp_type::simple_error
                                                             : resp_type::bulk_string;
    return address(task, leaf(type, {bytes, length}));
}
// The length is an int in hiredis 0.14, and a size_t later.
template <class Length>
void* create_array(const redisReadTask* task, Length) {
    return address(task, array({}));
}
void* create_integer(const redisReadTask* task, long long value) {
    return address(task, number(value));
}
void* create_nil(const redisReadTask* task) {
    return address(task, null());
}
void free_root(void* root) {
    delete static_cast<tree*>(root);
}

// By name: later versions have more of them, for RESP3.
redisReplyObjectFunctions tree_functions() {
    redisReplyObjectFunctions made{};
    made.createString = create_string;
    made.createArray = create_array;
    made.createInteger = create_integer;
    made.createNil = create_nil;
    made.freeObject = free_root;
    return made;
}

struct hiredis_outcome {
    std::vector<tree> replies;
    std::string error;  // empty: it waits for more
};

template <class NextSize>
hiredis_outcome parse_with_hiredis(std::string_view bytes, NextSize next_size) {
    static redisReplyObjectFunctions functions = tree_functions();
    const std::unique_ptr<redisReader, decltype(&redisReaderFree)> reader{redisReaderCreateWithFunctions(&functions),
                                                                          redisReaderFree};
    hiredis_outcome result;
    while (!bytes.empty()) {
        const std::size_t size = std::clamp<std::size_t>(next_size(), 1, bytes.size());
        redisReaderFeed(reader.get(), bytes.data(), size);
        bytes.remove_prefix(size);
        for (;;) {
            void* reply = nullptr;
            if (redisReaderGetReply(reader.get(), &reply) != REDIS_OK) {
                result.error = reader->errstr;
                return result;
            }
            if (reply == nullptr) break;
            const std::unique_ptr<tree> root{static_cast<tree*>(reply)};
            result.replies.push_back(std::move(*root));
        }
    }
    return result;
}

struct our_outcome {
    std::vector<tree> replies;
    resp_fault fault = resp_fault::none;
    std::string text;
};

template <class NextSize>
our_outcome parse_with_ours(std::string_view bytes, NextSize next_size) {
    // hiredis 0.14 has eight levels.
    resp_reader reader{{.max_depth = 8}};
    our_outcome result;
    while (!bytes.empty()) {
        const std::size_t size = std::clamp<std::size_t>(next_size(), 1, bytes.size());
        feed(reader, bytes.substr(0, size));
        bytes.remove_prefix(size);
        drain(reader, result.replies);
    }
    result.fault = reader.fault();
    result.text = reader.fault_text();
    return result;
}

// hiredis 0.14 stops at the type bytes of RESP3. The replies before must be the same.
bool stopped_at_resp3(const hiredis_outcome& theirs) {
    for (const char type : std::string_view{"_,#!=(%~>|"}) {
        if (theirs.error == "Protocol error, got \"" + std::string(1, type) + "\" as reply type byte") return true;
    }
    return false;
}

// Our reader refuses where hiredis goes on or still waits. The reasons:
bool deliberate_difference(const our_outcome& ours) {
    // Our limits, except depth, which is the same here.
    if (ours.fault == resp_fault::too_many_elements || ours.fault == resp_fault::bulk_too_long ||
        ours.fault == resp_fault::line_too_long) {
        return true;
    }
    // hiredis searches for the pair \r\n and accepts either alone in a line. Redis never sends that.
    if (ours.text.starts_with("newline without carriage return, at ")) return true;
    if (ours.text.starts_with("carriage return without newline, at ")) return true;
    // hiredis skips the two bytes behind a string unchecked.
    return ours.text.starts_with("string does not end where it said, at ");
}

void expect_same_prefix(const our_outcome& ours, const hiredis_outcome& theirs) {
    const std::size_t both = std::min(ours.replies.size(), theirs.replies.size());
    for (std::size_t i = 0; i < both; ++i) EXPECT_EQ(ours.replies[i], theirs.replies[i]) << "reply " << i;
}

void expect_agreement(const our_outcome& ours, const hiredis_outcome& theirs) {
    expect_same_prefix(ours, theirs);
    const std::size_t our_count = ours.replies.size();
    const std::size_t their_count = theirs.replies.size();
    if (!theirs.error.empty() && stopped_at_resp3(theirs) && our_count >= their_count) return;
    if (ours.fault == resp_fault::none) {
        EXPECT_EQ(theirs.error, "");
        EXPECT_EQ(our_count, their_count);
        return;
    }
    EXPECT_LE(our_count, their_count) << ours.text << " / " << theirs.error;
    const bool refused_by_both = !theirs.error.empty() && our_count == their_count;
    EXPECT_TRUE(refused_by_both || deliberate_difference(ours)) << ours.text << " / " << theirs.error;
}

TEST(Hiredis, ReadsTheSameFromSoundBytes) {
    for (std::uint32_t seed = 1; seed <= 3'000; ++seed) {
        SCOPED_TRACE(seed);
        reply_generator random{seed, reply_generator::protocol::resp2};
        std::string bytes;
        const std::size_t count = 1 + random.below(6);
        for (std::size_t i = 0; i < count; ++i) bytes += random.encode(random.reply(6));
        const auto any_size = [&] { return 1 + random.below(30); };
        const our_outcome ours = parse_with_ours(bytes, any_size);
        const hiredis_outcome theirs = parse_with_hiredis(bytes, any_size);
        ASSERT_EQ(ours.text, "");
        ASSERT_EQ(theirs.error, "");
        ASSERT_EQ(ours.replies.size(), count);
        ASSERT_EQ(ours.replies, theirs.replies);
    }
}

// All that a link gets that speaks RESP2: answers of scripts, and what comes to a link that listens.
TEST(Hiredis, ReadsTheSameFromEveryFormOfResp2) {
    const std::string forms[] = {
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "$0\r\n\r\n",
        ":-9223372036854775808\r\n",
        "-ERR unknown command 'HELLO'\r\n",
        "*3\r\n:1\r\n$-1\r\n*-1\r\n",
        "*2\r\n-NOPERM no\r\n*2\r\n:2\r\n*1\r\n$1\r\nx\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n",
        "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$0\r\n\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
        "*2\r\n$4\r\npong\r\n$0\r\n\r\n",
    };
    std::string all;
    for (const std::string& each : forms) all += each;
    for (std::size_t piece = 1; piece <= all.size(); ++piece) {
        const auto of_that_size = [piece] { return piece; };
        const our_outcome ours = parse_with_ours(all, of_that_size);
        const hiredis_outcome theirs = parse_with_hiredis(all, of_that_size);
        ASSERT_EQ(ours.text, "");
        ASSERT_EQ(ours.replies.size(), std::size(forms));
        ASSERT_EQ(ours.replies, theirs.replies) << "in pieces of " << piece;
    }
}

TEST(Hiredis, ReadsTheSameFromDamagedBytes) {
    std::size_t refused_by_both = 0;
    std::size_t stricter = 0;
    for (std::uint32_t seed = 1; seed <= 30'000 && !HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        reply_generator random{seed, reply_generator::protocol::resp2};
        std::string bytes;
        for (std::size_t count = 1 + random.below(4); count > 0; --count) bytes += random.encode(random.reply());
        bytes = random.damage(bytes);
        const auto any_size = [&] { return 1 + random.below(30); };
        const our_outcome ours = parse_with_ours(bytes, any_size);
        const hiredis_outcome theirs = parse_with_hiredis(bytes, any_size);
        expect_agreement(ours, theirs);
        if (ours.fault != resp_fault::none) ++(theirs.error.empty() ? stricter : refused_by_both);
    }
    // Both kinds must have occurred, otherwise the damage tests nothing.
    EXPECT_GT(refused_by_both, 1'000u);
    EXPECT_GT(stricter, 100u);
}

TEST(Hiredis, IsLaxerOnlyAsListed) {
    struct {
        const char* bytes;
        const char* reason;
    } const cases[] = {
        {"+a\nb\r\n", "newline without carriage return"},
        {"+a\rb\r\n", "carriage return without newline"},
        {"$1\r\nabc", "string does not end where it said"},
    };
    for (const auto& c : cases) {
        const auto whole = [] { return std::size_t{1000}; };
        EXPECT_EQ(parse_with_hiredis(c.bytes, whole).replies.size(), 1u) << c.bytes;
        EXPECT_TRUE(parse_with_ours(c.bytes, whole).text.starts_with(c.reason)) << c.bytes;
    }
}

}  // namespace
}  // namespace holdfast::redis::resp_hiredis_test
