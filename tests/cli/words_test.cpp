// What the command makes of words: options, the list of what is held above, the status line of a wait.
#include "cli/commands/run_options.hpp"
#include "cli/run/held_list.hpp"
#include "cli/terminal/waiting_display.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::cli::words_test {
namespace {

using namespace std::chrono_literals;

run_options parsed(std::vector<std::string> words) {
    run_options options;
    CLI::App app;
    declare(app, options);
    std::ranges::reverse(words);  // as CLI11 wants them
    app.parse(words);
    return options;
}

TEST(RunOptions, UrlMayBeRepeatedAndTakesOneWord) {
    const run_options options = parsed({"--url", "redis://x", "--url=redis://y", "a"});
    EXPECT_EQ(options.servers.urls, (std::vector<std::string>{"redis://x", "redis://y"}));
    EXPECT_EQ(options.name, "a");
    EXPECT_EQ(url_variable({.urls = {"redis://x", "unix:///a b"}}), "redis://x unix:///a%20b");
    EXPECT_EQ(url_variable({.local = true}), "local");
    EXPECT_EQ(url_variable({}), "");
}

TEST(RunOptions, LeaseIsTheLongestOneIfThatIsShorter) {
    EXPECT_EQ(parsed({"--max-lease", "5s", "a"}).lock_options().lease, 5s);
    EXPECT_EQ(parsed({"--max-lease", "5s", "a"}).terms().lease, 5s);
    EXPECT_EQ(parsed({"--max-lease", "5s", "--lease", "2s", "a"}).lock_options().lease, 2s);
    EXPECT_EQ(parsed({"--max-lease", "2h", "a"}).lock_options().lease, 30s);
    EXPECT_EQ(parsed({"--max-lease", "2h", "a"}).link_options().fence_retention, 2h);
    EXPECT_EQ(parsed({"--fence-retention", "60s", "a"}).link_options().fence_retention, 60s);
    EXPECT_EQ(parsed({"a"}).link_options().max_lease, client_options{}.max_lease);
    EXPECT_THROW(parsed({"--max-lease", "soon", "a"}).link_options(), trouble);
}

TEST(RunOptions, WithoutOptionsAreAPlainLockWithoutALimit) {
    const run_options options = parsed({"a"});
    EXPECT_EQ(options.lock_side(), side::plain);
    EXPECT_FALSE(options.wait_limit());
    EXPECT_EQ(options.lock_options().lease, 30s);
    EXPECT_EQ(options.lock().keys.lock(), "hf:{a}");
    EXPECT_EQ(options.terms().reaction, on_lost::kill);
}

TEST(RunOptions, ChooseTheSideOfAReadWriteLock) {
    EXPECT_EQ(parsed({"-s", "a"}).lock_side(), side::reading);
    EXPECT_EQ(parsed({"--shared", "--prefer", "writers", "a"}).lock_side(), side::reading);
    EXPECT_EQ(parsed({"-x", "a"}).lock_side(), side::writing);
    EXPECT_EQ(parsed({"--prefer", "readers", "a"}).lock_side(), side::writing);
    EXPECT_THROW(parsed({"-s", "-x", "a"}).lock_side(), trouble);
}

TEST(RunOptions, KnowEveryPreference) {
    EXPECT_EQ(parsed({"-s", "a"}).lock_options().prefer, prefer::arrival);
    EXPECT_EQ(parsed({"--prefer=arrival", "a"}).lock_options().prefer, prefer::arrival);
    EXPECT_EQ(parsed({"--prefer=readers", "a"}).lock_options().prefer, prefer::readers);
    EXPECT_EQ(parsed({"--prefer=writers", "a"}).lock_options().prefer, prefer::writers);
    EXPECT_THROW(parsed({"--prefer=me", "a"}).lock_options(), trouble);
}

TEST(RunOptions, WaitNotAtAllOrSoLong) {
    EXPECT_EQ(parsed({"--no-wait", "a"}).wait_limit(), 0ms);
    EXPECT_EQ(parsed({"--wait", "1.5s", "a"}).wait_limit(), 1500ms);
    EXPECT_THROW(parsed({"--wait", "1s", "--no-wait", "a"}).wait_limit(), trouble);
    EXPECT_THROW(parsed({"--wait", "soon", "a"}).wait_limit(), trouble);
}

TEST(RunOptions, ShellIsACommandOfItsOwn) {
    run_options options = parsed({"--shell", "a | b", "name"});
    EXPECT_EQ(options.command(), (std::vector<std::string>{"/bin/sh", "-c", "a | b"}));
    options.words = {"true"};
    EXPECT_THROW(options.command(), trouble);
    EXPECT_THROW(parsed({"name"}).command(), trouble);
}

TEST(HeldList, ComesBackAsItWasWritten) {
    held_list list;
    list.add({{"redis://host:6379", "hf:{a b|%}"}, 7, "hf_1.2.3"});
    list.add({{"unix:///s", "hf:{ü}"}, 18'000'000'000'000'000'000U, "hf_4.5.6"});
    const held_list again = held_list::parse(list.text());
    EXPECT_EQ(again.text(), list.text());
    const auto found = again.find({"redis://host:6379", "hf:{a b|%}"});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->hold_id, "hf_1.2.3");
    EXPECT_EQ(found->token, 7U);
    EXPECT_FALSE(again.find({"redis://other", "hf:{ü}"}));
}

lock_state a_lock() {
    return lock_state({wire::lock_name("a"), wire::key_naming::tagged, "hf:"});
}

lock_holder holder_of(std::string program, access mode) {
    return {{.id = "x", .mode = mode, .held = 65s, .left = 28s}, client_facts{"web", "7", std::move(program), "al"}};
}

const client_facts self{"here", "42", "holdfast", "me"};

TEST(StatusLine, TellsHolderTimeAndPosition) {
    lock_state lock = a_lock();
    lock.holders.push_back(holder_of("backup", access::exclusive));
    lock.waiters.push_back({{.id = "1"}, client_facts{"there", "42", "", ""}});
    lock.waiters.push_back({{.id = "2"}, self});
    EXPECT_EQ(
        describe_wait(lock, self, 12s),
        "holdfast: 'a' is held by al@web backup[7] for 1m5s, 28s of its lease left; waiting 12s, position 2 of 2");
}

TEST(StatusLine, CountsReadersAndWaitersIfTheOwnPositionIsUnknown) {
    lock_state lock = a_lock();
    lock.kind = wire::lock_kind::read_write;
    for (int i = 0; i < 3; ++i) lock.holders.push_back(holder_of("report", access::read));
    lock.waiters.push_back({{.id = "1"}});
    EXPECT_EQ(describe_wait(lock, self, 2s),
              "holdfast: 'a' is read by al@web report[7] for 1m5s and 2 others; waiting 2s, 1 in the queue");
}

TEST(StatusLine, NeverLetsANameDriveTheTerminal) {
    lock_state lock({wire::lock_name("a\x1b[2J"), wire::key_naming::tagged, "hf:"});
    lock.holders.push_back(holder_of("\x1b]0;x", access::exclusive));
    EXPECT_EQ(describe_wait(lock, self, 2s).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace holdfast::cli::words_test
