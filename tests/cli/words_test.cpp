// What the command makes of words: options, the list of what is held above, the status line of a wait.
#include "cli/commands/habits.hpp"
#include "cli/commands/run_options.hpp"
#include "cli/run/held_list.hpp"
#include "cli/terminal/waiting_display.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>

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

TEST(RunOptions, AllowForServersThatForgetLagOrDisagree) {
    const run_options options = parsed({"--mistrust-restarts", "--replicas", "2", "--clock-skew", "50ms", "a"});
    EXPECT_EQ(options.link_options().after_restart, restarted_server::mistrusted);
    EXPECT_EQ(options.link_options().clock_skew, 50ms);
    EXPECT_EQ(options.lock_options().replicas, 2U);
    EXPECT_EQ(parsed({"a"}).link_options().after_restart, restarted_server::trusted);
    EXPECT_THROW(parsed({"--clock-skew", "50", "a"}).link_options(), trouble);
}

// What a finding prescribes to a user of the shell must be there to be said.
TEST(RunOptions, HaveEveryOptionThatDoctorPrescribes) {
    run_options options;
    CLI::App app;
    declare(app, options);
    std::size_t found = 0;
    for (const char* file : {"doctor_checks.cpp", "doctor_together.cpp"}) {
        std::ifstream in(std::string(HOLDFAST_SOURCES "/cli/doctor/") + file);
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        const std::regex option("[ (](--[a-z][a-z-]+)");
        for (std::sregex_iterator at(text.begin(), text.end(), option), end; at != end; ++at) {
            const std::string name = (*at)[1];
            if (name == "--cluster") continue;  // of redis-cli
            ++found;
            EXPECT_NE(app.get_option_no_throw(name), nullptr) << name;
        }
        EXPECT_EQ(text.find("restarted_server::"), text.npos) << "a name of the library alone";
    }
    EXPECT_GE(found, 5U);
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

TEST(RunOptions, HaveTheShortFormsOfFlock) {
    EXPECT_EQ(parsed({"-n", "a"}).wait_limit(), 0ms);
    EXPECT_EQ(parsed({"-w", "5", "a"}).wait_limit(), 5s);
    EXPECT_EQ(parsed({"-w", "0.25", "a"}).wait_limit(), 250ms);
    EXPECT_EQ(parsed({"-w", "5m", "a"}).wait_limit(), 5min);
    EXPECT_THROW(parsed({"-w", "1.2.3", "a"}).wait_limit(), trouble);
    EXPECT_EQ(parsed({"a", "-c", "x | y"}).command(), (std::vector<std::string>{"/bin/sh", "-c", "x | y"}));
}

TEST(RunOptions, CommandStandsBehindDashesOrBehindTheName) {
    using words = std::vector<std::string>;
    EXPECT_EQ(command_words(std::nullopt, {"echo", "-n", "hi"}), (words{"echo", "-n", "hi"}));
    EXPECT_EQ(command_words(words{"echo"}, {}), words{"echo"});
    EXPECT_THROW(command_words(words{"echo"}, {"b"}), trouble);
    EXPECT_THROW(command_words(std::nullopt, {"--bogus", "echo"}), trouble);
}

TEST(Habits, OptionsBeforeTheSubcommandAndHelp) {
    using words = std::vector<std::string>;
    const spoken_words spoken = split({"--url", "redis://x", "--prefix=p:", "--local", "ls", "--json"});
    EXPECT_EQ(spoken.global, (words{"--url", "redis://x", "--prefix=p:", "--local"}));
    EXPECT_EQ(spoken.rest, (words{"ls", "--json"}));
    EXPECT_EQ(split({"help"}).rest, words{"--help"});
    EXPECT_EQ(split({"help", "server", "stop"}).rest, (words{"server", "stop", "--help"}));
    EXPECT_EQ(split({"--url"}).rest, words{});
    EXPECT_EQ(split({"run", "help"}).rest, (words{"run", "help"}));
}

TEST(Habits, UnknownSubcommandsAreGuessed) {
    const std::vector<std::string> known{"run", "ls", "show", "doctor", "server"};
    EXPECT_EQ(instead_of("list", known), "holdfast ls");
    EXPECT_EQ(instead_of("rnu", known), "holdfast run");
    EXPECT_EQ(instead_of("docter", known), "holdfast doctor");
    EXPECT_EQ(instead_of("start", known), "holdfast server start");
    EXPECT_EQ(instead_of("stock:1001", known), "");
    EXPECT_EQ(instead_of("xy", known), "");
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
    const wait_text text = describe_wait(lock, self, 12s);
    const std::string wait = "holdfast: waiting 12s, position 2 of 2, for 'a'";
    const std::string reason = "held by al@web backup[7] for 1m5s, 28s of its lease left";
    EXPECT_EQ(lines_of(text, 120), std::vector{wait + "; " + reason});
    EXPECT_EQ(lines_of(text, 80), (std::vector{wait, "  " + reason}));
    EXPECT_EQ(lines_of(text, 39), (std::vector<std::string>{"holdfast: waiting 12s, position 2 of 2…",
                                                            "  held by al@web backup[7] for 1m5s, 2…"}));
}

TEST(StatusLine, CountsReadersAndWaitersIfTheOwnPositionIsUnknown) {
    lock_state lock = a_lock();
    lock.kind = wire::lock_kind::read_write;
    for (int i = 0; i < 3; ++i) lock.holders.push_back(holder_of("report", access::read));
    lock.waiters.push_back({{.id = "1"}});
    EXPECT_EQ(lines_of(describe_wait(lock, self, 2s), 120).front(),
              "holdfast: waiting 2s, 1 in the queue, for 'a'; read by al@web report[7] for 1m5s and 2 others");
}

TEST(StatusLine, NeverLetsANameDriveTheTerminal) {
    lock_state lock({wire::lock_name("a\x1b[2J"), wire::key_naming::tagged, "hf:"});
    lock.holders.push_back(holder_of("\x1b]0;x", access::exclusive));
    EXPECT_EQ(lines_of(describe_wait(lock, self, 2s), 200).front().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace holdfast::cli::words_test
