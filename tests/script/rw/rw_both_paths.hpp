// The fast paths of rw/acquire and rw/release must do what the general path does: the same answer, the same keys, the
// same expiries. So there are two servers here with one clock and one state: one has the scripts as they are, the other
// has them without their fast path.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "script/rw/foreign_rw.hpp"
#include "script/rw/rw_rows.hpp"
#include "server_model/differential/command_maker.hpp"
#include "server_model/differential/real_server.hpp"

namespace holdfast::testing {

using words = std::vector<std::string>;

enum class path { fast, general };

class both_paths : public ::testing::Test {
protected:
    static constexpr std::int64_t start_us = 1'800'000'000'123'456;
    static constexpr std::int64_t minute = 60'000;

    const std::string lock = "hf:{stock}", queue = "hf:{stock}:queue", waiters = "hf:{stock}:waiters",
                      fence = "hf:{stock}:fence", leases = "hf:{stock}:leases", grants = "hf:{stock}:grants";
    const std::string ann = hold_id("ann"), bob = hold_id("bob"), cid = hold_id("cid"), dan = hold_id("dan");

    both_paths() {
        for (const char* name : {"rw/acquire", "rw/release", "rw/renew"}) {
            const std::string text{wire::find(name).text};
            as_it_is_[name] = load(real_, text);
            general_[name] = load(other_, without_fast_path(text));
        }
    }

    void start_again() {
        tell({"CONFIG", "SET", "maxmemory", "0"});
        tell({"FLUSHALL"});
        tokens_.clear();
        pass_us(start_us - now_us_);
    }
    void pass_us(std::int64_t us) {
        now_us_ += us;
        real_.set_time(now_us_);
        other_.set_time(now_us_);
    }
    void pass(std::int64_t ms) { pass_us(ms * 1000); }
    void moves_to_clock_ahead_by(std::int64_t ms) {
        now_us_ += ms * 1000;
        real_.move_to_clock(now_us_);
        other_.move_to_clock(now_us_);
    }
    std::int64_t now_ms() const { return now_us_ / 1000; }

    // Another's command, or another program's script, to both servers.
    sim::value tell(const words& command) {
        sim::value answer = real_.link().call(command);
        EXPECT_EQ(other_.link().call(command), answer);
        return answer;
    }
    void foreign(std::string_view script, std::int64_t ttl_ms) {
        tell({"EVAL", std::string{script}, "1", lock, "b7c0-1d", text(ttl_ms)});
    }
    void server_is_full() { tell({"CONFIG", "SET", "maxmemory", "1"}); }

    struct outcome {
        sim::value answer;
        path taken;
    };

    // One of our scripts, by both ways.
    outcome give(const std::string& name, const words& arguments) {
        words command{"EVALSHA", "", "6", lock, queue, waiters, fence, leases, grants};
        command.insert(command.end(), arguments.begin(), arguments.end());
        real_.link().call({"CONFIG", "RESETSTAT"});
        command[1] = as_it_is_.at(name);
        const sim::value answer = without_place(real_.link().call(command));
        const bool counted =
            real_.link().call({"INFO", "commandstats"}).text.find("cmdstat_zcard:") != std::string::npos;
        command[1] = general_.at(name);
        const sim::value expected = without_place(other_.link().call(command));
        EXPECT_EQ(answer, expected);
        EXPECT_EQ(real_.dump(), other_.dump());
        if (name == "rw/acquire" && answer.items.size() == 2) tokens_[arguments.at(0)] = answer.items[1].text;
        return {answer, counted ? path::general : path::fast};
    }

    words to_acquire(const std::string& id, const std::string& wants, std::int64_t lease = minute) const {
        return {id, "3600000", "arrival", wants, text(lease), "0", "", "0", "10000", "61000", "0", "0", "0"};
    }
    words to_release(const std::string& id) const {
        const auto token = tokens_.find(id);
        return {id, "3600000", "arrival", token == tokens_.end() ? "7" : token->second, "", "60000", "0"};
    }
    static words with(std::size_t argument, const std::string& instead, words arguments) {
        arguments.at(argument - 1) = instead;
        return arguments;
    }

    outcome read(const std::string& id, std::int64_t lease = minute) {
        return give("rw/acquire", to_acquire(id, "r", lease));
    }
    outcome write(const std::string& id) { return give("rw/acquire", to_acquire(id, "w")); }
    outcome release(const std::string& id) { return give("rw/release", to_release(id)); }
    void all_read(const std::vector<std::string>& ids) {
        for (const std::string& id : ids) read(id), pass(10);
    }

    static std::string text(std::int64_t number) { return std::to_string(number); }

    std::int64_t now_us_ = start_us;
    std::map<std::string, std::string> tokens_;  // what each was granted last

private:
    static std::string load(sim::real_server& server, const std::string& script) {
        return server.link().call({"SCRIPT", "LOAD", script}).text;
    }
    // The condition of the fast path becomes false.
    static std::string without_fast_path(std::string script) {
        constexpr std::string_view block = " then\n    local now_us, now_text";
        const auto end = script.find(block);
        if (end == std::string::npos) return script;
        const auto begin = script.rfind("\nif ", end) + 4;
        return script.replace(begin, end - begin, "false");
    }
    // An error says in which script, and where in it.
    static sim::value without_place(sim::value answer) {
        if (answer.is_error()) answer.text = answer.text.substr(0, answer.text.find(" script: "));
        return answer;
    }

    sim::real_server real_{HOLDFAST_SIM_CLOCK_MODULE, start_us};
    sim::real_server other_{HOLDFAST_SIM_CLOCK_MODULE, start_us};
    std::map<std::string, std::string> as_it_is_, general_;
};

}  // namespace holdfast::testing
