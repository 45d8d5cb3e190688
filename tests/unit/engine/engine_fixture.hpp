// The engine with a real multiplexer for a wire, and the test in the server's place.
//
// What the engine sends is read back as questions: which script, which arguments. What the server says is put together
// from words. Time stands still until the test moves it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "redis/session/multiplexer.hpp"
#include "unit/redis/resp/parsed_reply.hpp"
#include "unit/redis/session/command_bytes.hpp"
#include "wire/scripts.hpp"

namespace holdfast::engine::testing {

using namespace std::chrono_literals;

class counting_random final : public random_source {
public:
    std::uint64_t next() override { return ++count_ * 0x9e3779b97f4a7c15U; }

private:
    std::uint64_t count_ = 0;
};

class silent_observer : public observer {
    void on_acquired(std::chrono::nanoseconds, holdfast::engine::how) override {}
    void on_reentered() override {}
    void on_refused() override {}
    void on_released(std::chrono::nanoseconds) override {}
    void on_renewed() override {}
    void on_renewal_failed(const failure&) override {}
    void on_lost(const std::string&, errc) override {}
    void on_support(const std::string&, support_now, support_count) override {}
};

class recorded_request final : public acquire_completion {
public:
    hold* held = nullptr;
    std::optional<errc> refusal_code;
    refusal why;
    std::string refusal_detail;

private:
    void acquired(hold& got) override { held = &got; }
    void refused(const refusal& told) override {
        why = told;
        refusal_code = why.code;
        refusal_detail = why.detail;
    }
};

/// Of a release, a renewal or a downgrade. errc{}: it went well.
class recorded_answer final : public hold_completion {
public:
    std::optional<errc> code;

private:
    void answered(const std::optional<refusal>& why_not) override { code = why_not ? why_not->code : errc{}; }
};

class recorded_life final : public hold_listener {
public:
    std::vector<fencing_token> tokens;
    std::optional<errc> lost;
    bool gone = false;

private:
    void on_validity(instant) override {}
    void on_token(fencing_token token) override { tokens.push_back(token); }
    void on_lost(errc why) override { lost = why; }
    void on_gone() override { gone = true; }
};

/// A script call as the server gets it.
struct question {
    std::string script;
    std::vector<std::string> arguments;  // without the keys
    std::vector<std::string> keys = {};
};

inline std::string bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

/// An answer of a script; numbers may stand in it as texts.
inline std::string list(std::initializer_list<std::string_view> words) {
    std::string out = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string_view word : words) out += bulk(word);
    return out;
}

/// What comes without being asked for.
struct pushed {
    std::string kind;
    std::string channel;
    std::string text;
};

/// A trouble of the server that may pass.
inline const std::string no_replicas = "-NOREPLICAS Not enough good replicas to write.\r\n";

inline std::shared_ptr<const lock_keys> keys_for(const std::string& name) {
    return std::make_shared<const lock_keys>(wire::make_keys(wire::lock_name(name), wire::key_naming::tagged, "hf:"));
}

/// The lock of that name, and no other.
class only final : public lock_set {
public:
    explicit only(const std::string& name) : key_(keys_for(name)->lock()) {}
    bool has(const lock_keys& lock) const noexcept override { return lock.lock() == key_; }

private:
    const std::string key_;
};

/// A server as the engine sees it: a real multiplexer, and the test behind it.
class played_server final : public outbox, public redis::push_listener {
public:
    played_server() { wires_.open_gate(); }

    /// Whose pushes it has.
    void belong_to(engine& subject, std::size_t number) {
        subject_ = &subject;
        number_ = number;
    }

    /// What the engine wants to have sent goes out.
    std::vector<question> send(instant now) {
        std::vector<question> asked = read_questions(wires_.begin_write(now));
        wires_.end_write();
        return asked;
    }
    /// From now on a link that the engine distrusts is ended at once, in the middle of what brought that about.
    void end_distrusted_links() { ends_distrusted_ = true; }
    void receive(std::string_view bytes, instant now) {
        now_ = now;
        const std::span<char> room = wires_.prepare(bytes.size());
        std::copy(bytes.begin(), bytes.end(), room.begin());
        wires_.commit(bytes.size());
        ASSERT_FALSE(wires_.deliver(*this, now));
    }
    void push(const std::string& text, instant now) {
        push(pushed{"message", "hf:wake:" + subject_->id().text(), text}, now);
    }
    void push(const pushed& what, instant now) {
        receive(">3\r\n" + bulk(what.kind) + bulk(what.channel) + bulk(what.text), now);
    }
    void take_link_down(instant now) {
        up_ = false;
        wires_.link_down({errc::unreachable, "cut"}, now);
        subject_->node(number_).on_link_down(all_locks(), now);
    }
    /// From the beginning: nothing was ever reached.
    void begin_without_link() {
        up_ = false;
        wires_.link_down({errc::unreachable, ""}, {});
    }
    /// An attempt to make the first link has failed.
    void fail_attempt(errc code, instant now) { wires_.fail_impatient({code, "the test says so"}, now); }
    /// What is not sent yet is told that it will not be.
    void fail_waiting(errc code, instant now) { wires_.fail_waiting({code, "the test says so"}, now); }
    /// What was not written before its deadline is told so.
    void expire(instant now) { wires_.expire({errc::unreachable, "the test says so"}, now); }
    void bring_link_up(const node_facts& facts, instant now) {
        up_ = true;
        wires_.link_up();
        wires_.open_gate();
        subject_->node(number_).on_link_up(facts, all_locks(), now);
    }
    /// As in a Cluster, where locks have links of their own: that of this one breaks, and comes back.
    void lose_part(const std::string& name, instant now) {
        cut_off_.insert(keys_for(name)->lock());
        subject_->node(number_).on_link_down(only(name), now);
    }
    void regain_part(const std::string& name, instant now) {
        cut_off_.erase(keys_for(name)->lock());
        subject_->node(number_).on_link_up({}, only(name), now);
    }
    void mistrust(const std::string& name, instant until) { trusted_from_[keys_for(name)->lock()] = until; }
    /// So many replicas have what the oldest confirmation is about.
    void acknowledge(int replicas, instant now) {
        const redis::testing::parsed count(":" + std::to_string(replicas) + "\r\n");
        redis::routing::answer(take_confirmation(), count.reply, now);
    }
    /// To the oldest confirmation, as a Cluster does before the number.
    void show(milliseconds left, instant asked_at) { confirmations.at(0).request->on_shown(left, asked_at); }
    void fail_confirmation(errc code, instant now) {
        redis::routing::fail(take_confirmation(), {code, "the test says so"}, now);
    }
    struct confirmation {
        redis::command* request;
        question asked;
        std::string lock;
        redis::acknowledgement wanted;
    };
    std::vector<confirmation> confirmations;  // asked for, and neither answered nor withdrawn

    /// Whether subscriptions are confirmed.
    void confirm_subscriptions(bool are) { hears_ = are; }
    /// How waiters are woken from now on.
    void wake_by(woken_by how, instant now) {
        wakes_ = how;
        subject_->node(number_).on_wakes_changed(all_locks(), now);
    }
    /// What was subscribed ("+channel") and unsubscribed ("-channel") since the last time.
    std::vector<std::string> take_subscriptions() { return std::exchange(subscriptions_, {}); }

private:
    void submit(redis::command& request) override { wires_.submit(request); }
    bool withdraw(redis::command& request) override {
        const auto is_it = [&request](const confirmation& each) { return each.request == &request; };
        if (std::erase_if(confirmations, is_it) == 0) return wires_.withdraw(request);
        redis::routing::set_idle(request);
        return true;
    }
    void confirm(redis::command& request, const lock_keys& lock, redis::acknowledgement wanted) override {
        redis::routing::set_waiting(request);
        const question asked = read_questions(redis::testing::bytes_of(request)).at(0);
        confirmations.push_back({&request, asked, lock.lock(), wanted});
    }
    void distrust(const failure&) override {
        if (ends_distrusted_) take_link_down(now_);
    }
    void subscribe(const std::string& channel) override { subscriptions_.push_back("+" + channel); }
    bool hears(const std::string&) const override { return up_ && hears_; }
    woken_by wakes(const std::string&) const override { return wakes_; }
    void unsubscribe(const std::string& channel) override { subscriptions_.push_back("-" + channel); }
    bool link_is_up(const lock_keys& lock) const override { return up_ && !cut_off_.contains(lock.lock()); }
    failure why_not_up(const lock_keys&) const override { return {errc::connection_refused, "nobody is there"}; }
    instant trusted_from(const lock_keys& lock) const override {
        const auto found = trusted_from_.find(lock.lock());
        return found == trusted_from_.end() ? instant() : found->second;
    }
    void on_push(const redis::reply_view& message, instant at) override {
        subject_->node(number_).on_push(message, at);
    }

    redis::command& take_confirmation() {
        redis::command& oldest = *confirmations.at(0).request;
        confirmations.erase(confirmations.begin());
        return oldest;
    }

    static std::vector<question> read_questions(std::string_view bytes) {
        const auto take_number = [&bytes](char kind) {
            EXPECT_EQ(bytes.front(), kind);
            const auto end = bytes.find("\r\n");
            const std::size_t number = std::stoul(std::string(bytes.substr(1, end - 1)));
            bytes.remove_prefix(end + 2);
            return number;
        };
        std::vector<question> found;
        while (!bytes.empty()) {
            std::vector<std::string> words(take_number('*'));
            for (std::string& word : words) {
                const std::size_t size = take_number('$');
                word = bytes.substr(0, size);
                bytes.remove_prefix(size + 2);
            }
            found.push_back(to_question(words));
        }
        return found;
    }

    // EVALSHA <sha>, or EVAL <text>, <number of keys> <keys> <arguments>
    static question to_question(const std::vector<std::string>& words) {
        question out;
        for (const redis::script& each : wire::all()) {
            if (each.sha1 == words.at(1) || each.text == words.at(1)) out.script = each.name;
        }
        const auto from = 3 + static_cast<std::ptrdiff_t>(std::stoul(words.at(2)));
        out.keys.assign(words.begin() + 3, words.begin() + from);
        out.arguments.assign(words.begin() + from, words.end());
        return out;
    }

    redis::multiplexer wires_;
    engine* subject_ = nullptr;
    std::size_t number_ = 0;
    bool up_ = true;
    std::set<std::string> cut_off_;
    std::map<std::string, instant> trusted_from_;
    std::vector<std::string> subscriptions_;
    bool ends_distrusted_ = false;
    bool hears_ = true;
    woken_by wakes_ = woken_by::push;
    instant now_{};
};

class engine_fixture : public ::testing::Test {
protected:
    explicit engine_fixture(channels listens = channels::one)
        : subject({.max_depth = 10}, {{&server, "redis://h", listens}}, random, nobody) {
        server.belong_to(subject, 0);
        server.bring_link_up({}, now);
    }

    std::vector<question> send() { return server.send(now); }
    /// The same, of exactly one question.
    question send_one() {
        std::vector<question> asked = send();
        EXPECT_EQ(asked.size(), 1U);
        return asked.empty() ? question{} : asked.front();
    }
    void receive(std::string_view bytes) { server.receive(bytes, now); }
    void push(const std::string& text) { server.push(text, now); }
    /// What was written and not answered has an unknown end; the next link is there at once.
    void break_link() {
        server.take_link_down(now);
        server.bring_link_up({}, now);
    }
    void later(milliseconds by) {
        now += by;
        subject.on_timer(now);
    }

    counting_random random;
    silent_observer nobody;
    played_server server;
    engine subject;
    std::shared_ptr<const lock_keys> keys = keys_for("x");
    recorded_request first;
    instant now{1h};
};

/// A read-write lock, and a hold on it that reads.
class read_write_engine_fixture : public engine_fixture {
protected:
    acquire_terms terms(access want, owner_id owner = owner_id{7}) const {
        return {
            .keys = keys, .options = {.lease = 30'000ms, .kind = lock_kind::read_write}, .want = want, .owner = owner};
    }

    /// A hold with token 42 that reads.
    hold& reading() {
        subject.acquire(first, terms(access::shared), now);
        id = send_one().arguments.at(0);
        receive(list({"1", "42"}));
        first.held->listen(life);
        return *first.held;
    }

    /// The same, and token 51 that writes as well.
    hold& reading_and_writing() {
        hold& held = reading();
        ask_for_upgrade(held);
        receive(list({"1", "51"}));
        EXPECT_EQ(upgrade.held, &held);
        return held;
    }

    question ask_for_upgrade(hold& held) {
        subject.upgrade(held, upgrade, {}, now);
        return send_one();
    }

    /// Waits in the queue for an upgrade; the last token given out was 50.
    hold& waiting() {
        hold& held = reading();
        ask_for_upgrade(held);
        receive(queued);
        return held;
    }

    void expect_question(const question& asked, const std::string& script, const std::string& token = {},
                         const std::string& left_over = {}) {
        EXPECT_EQ(asked.script, script);
        EXPECT_EQ(asked.arguments.at(0), id);
        if (script != "rw/release") return;
        EXPECT_EQ(asked.arguments.at(3), token);
        EXPECT_EQ(asked.arguments.at(4), left_over);
    }

    const std::string somebody = "another program";
    const std::string queued = list({"2", "900", somebody, "77", "0", "50", "900"});
    std::string id;
    std::shared_ptr<recorded_life> life = std::make_shared<recorded_life>();
    recorded_request upgrade;
    recorded_answer answer;
};

}  // namespace holdfast::engine::testing
