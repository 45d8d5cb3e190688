#include "explore/other_locks/script_process.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim::explore {

class script_process::program_user final : public user {
public:
    program_user(script_process& whose, std::vector<act> steps) : whose_(whose), steps_(std::move(steps)) {}

    bool may_step() const override { return at_ < steps_.size() && !whose_.asking_ && !whose_.busy_; }
    std::string next_step() const override { return whose_.name_ + " " + std::string(name_of(steps_[at_])); }
    void step() override {
        const act next = steps_[at_++];
        whose_.when_awake([this, next] { whose_.step(next); });
        skip();
    }
    bool has_begun() const override { return at_ > 0; }
    bool is_done() const override { return at_ == steps_.size() && !whose_.asking_ && !whose_.busy_; }
    void begin_nothing_more() override {
        whose_.ending_ = true;
        skip();
    }
    void died() override {
        if (whose_.belief_) whose_.belief_->over = true;
    }
    std::string describe() const override {
        return whose_.name_ + (whose_.asking_ ? " waits" : whose_.holds_ ? " holds" : " is idle");
    }

    std::uint64_t turn() const override { return may_still_write(steps_, at_) ? whose_.turn_ : 0; }

    // What comes after a refused acquisition has no meaning.
    void skip() {
        while (at_ < steps_.size() && !whose_.asking_ && (acquires(steps_[at_]) ? whose_.ending_ : !whose_.holds_))
            ++at_;
    }

private:
    script_process& whose_;
    const std::vector<act> steps_;
    std::size_t at_ = 0;
};

script_process::script_process(small_world& where, std::size_t number, std::string name, std::vector<act> steps)
    : where_(where), number_(number), name_(std::move(name)) {
    users.push_back(std::make_unique<program_user>(*this, std::move(steps)));
}

void script_process::start() {
    for (std::size_t i = 0; i < where_.setup().servers; ++i) {
        servers_.push_back(std::make_unique<connection>());
        connection& at = *servers_.back();
        at.real = &where_.open(
            number_, i, [this, &at](const packet& what) { when_awake([this, &at, what] { arrived(at, what); }); });
    }
}

void script_process::when_awake(timeline::action what) {
    if (dead_) return;
    ++runs_;
    if (paused_) return postponed_.push_back(std::move(what)), void();
    what();
}

// Its timers have been postponed like its messages, so there is only one order.
void script_process::resume(client::first) {
    paused_ = false;
    while (!postponed_.empty()) {
        const timeline::action next = std::move(postponed_.front());
        postponed_.pop_front();
        next();
    }
}

void script_process::die() {
    dead_ = true;
    for (const auto& one : servers_) one->real->client_open = false;
}

void script_process::close() {
    for (const auto& one : servers_) {
        if (one->real->client_open) one->real->up.end();
    }
    die();
}

bool script_process::is_quiet() const {
    return !asking_ && !holds_ && !busy_ &&
           std::all_of(servers_.begin(), servers_.end(), [](const auto& one) { return one->waiting.empty(); });
}

void script_process::send(std::size_t server_number, const std::vector<std::string>& words, answer_to then) {
    connection& at = *servers_[server_number];
    if (!at.real->client_open) return;
    std::string out = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) out += bulk(word);
    at.waiting.push_back(std::move(then));
    at.real->up.send(std::move(out));
}

void script_process::after(milliseconds wait, std::function<void()> what) {
    where_.time().after(wait, [this, what = std::move(what)] { when_awake(what); });
}

// A link that breaks stays broken: these locks do not say what to do then.
void script_process::arrived(connection& at, const packet& what) {
    if (what.what == packet::kind::end) {
        at.real->client_open = false;
        at.waiting.clear();
        return;
    }
    const std::span<char> room = at.reader.prepare(what.bytes.size());
    std::copy(what.bytes.begin(), what.bytes.end(), room.begin());
    at.reader.commit(what.bytes.size());
    redis::reply_view whole;
    while (at.reader.next(whole) == redis::resp_status::reply) {
        if (whole.type() == redis::resp_type::push && whole[0].text() == "message") {
            heard(std::string(whole[1].text()), std::string(whole[2].text()));
            continue;
        }
        told answer;
        if (!whole.is_aggregate()) answer = {std::string(whole.text()), whole.to_integer().value_or(0)};
        if (at.waiting.empty()) continue;
        const answer_to then = std::move(at.waiting.front());
        at.waiting.pop_front();
        then(answer);
    }
}

void script_process::note(const std::string& what) const {
    if (where_.trace()) where_.trace()("  " + name_ + " " + what);
}

void script_process::step(act next) {
    switch (next) {
        case act::acquire:
        case act::try_once:
        case act::read:
            if (holds_) {
                busy_ = true;
                return read_once_more();
            }
            asking_ = true;
            asked_at_ = now();
            return next == act::read ? read() : acquire();
        case act::release:
            holds_ = false;
            busy_ = true;
            belief_->over = true;
            return release();
        case act::check:
            may_write_ = belief_->until > now();
            return;
        case act::write:
            if (may_write_) where_.guarded().take({turn_, 0}, name_);
            return;
        default:
            return;
    }
}

void script_process::acquired(instant until, engine::access mode) {
    asking_ = false;
    holds_ = true;
    turn_ = where_.guarded().next_turn();
    note("acquired");
    belief_ = where_.check().believes({.lock = "lock",
                                       .id = name_,
                                       .token = 0,
                                       .until = until,
                                       .mode = mode,
                                       .lease = where_.setup().lease,
                                       .asked = asked_at_});
}

void script_process::refused() {
    asking_ = false;
    note("is refused");
    static_cast<program_user&>(*users[0]).skip();
}

}  // namespace holdfast::sim::explore
