#include "script/semaphore/semaphore_model.hpp"

#include <algorithm>
#include <limits>

namespace holdfast::testing {

using sim::value;

namespace {

value list(std::int64_t verdict, std::vector<value> rest) {
    rest.insert(rest.begin(), value::make_integer(verdict));
    return value::make_array(std::move(rest));
}

value number(std::uint64_t of) {
    return value::make_bulk(std::to_string(of));
}

}  // namespace

// --- time -------------------------------------------------------------------------------------------------

void semaphore_model::set_time(std::int64_t now_us) {
    now_us_ = now_us;
    forget_what_expired();
}

void semaphore_model::move_to_clock(std::int64_t now_us) {
    const std::int64_t by_ms = now_us / 1000 - now_ms();
    for (auto& [id, one] : holds_) one.until_ms += by_ms;
    if (limit_) limit_->until_ms += by_ms;
    queue_until_ms_ += by_ms;
    mark_until_ms_ += by_ms;
    now_us_ = now_us;
    forget_what_expired();
}

// A key lives through the millisecond of its expiry. Leases and grants live as long as the last lease.
void semaphore_model::forget_what_expired() {
    if (now_ms() > last_deadline()) holds_.clear();
    if (limit_ && now_ms() > limit_->until_ms) limit_.reset();
    if (now_ms() > queue_until_ms_) queue_.clear();
    if (now_ms() > mark_until_ms_) mark_ = 0;
}

std::int64_t semaphore_model::last_deadline() const {
    std::int64_t last = 0;
    for (const auto& [id, one] : holds_) last = std::max(last, one.until_ms);
    return last;
}

std::int64_t semaphore_model::first_deadline() const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const auto& [id, one] : holds_) first = std::min(first, one.until_ms);
    return first;
}

// --- the holders ------------------------------------------------------------------------------------------

std::int64_t semaphore_model::out() const {
    std::int64_t sum = 0;
    for (const auto& [id, one] : holds_) sum += one.permits;
    return sum;
}

std::uint64_t semaphore_model::token_of(const std::string& id) const {
    const auto found = holds_.find(id);
    return found == holds_.end() ? 0 : found->second.token;
}

// A crash returns exactly its permits.
void semaphore_model::remove_what_is_over() {
    std::erase_if(holds_, [&](const auto& one) { return one.second.until_ms <= now_ms(); });
}

void semaphore_model::admit(const semaphore_step& wants) {
    holds_[wants.id] = {wants.permits, take_token(wants.floor), now_ms() + wants.lease_ms};
}

// The limit is known while somebody holds or waits; after a resize for the retention.
void semaphore_model::settle(const semaphore_step& step) {
    if (!limit_) return;
    if (holds_.empty() && queue_.empty() && limit_->version.empty()) return limit_.reset();
    limit_->out = out();
    limit_->until_ms = holds_.empty() ? now_ms() : last_deadline();
    if (!queue_.empty()) limit_->until_ms = std::max(limit_->until_ms, queue_until_ms_);
    if (!limit_->version.empty()) limit_->until_ms = std::max(limit_->until_ms, now_ms() + step.retention_ms);
}

// --- the queue --------------------------------------------------------------------------------------------

std::string semaphore_model::ticket_of(const std::string& id) const {
    const auto found = queue_.find(id);
    return found == queue_.end() ? "0" : std::to_string(found->second.ticket);
}

std::vector<std::string> semaphore_model::in_order() const {
    std::set<std::pair<std::int64_t, std::string>> sorted;
    for (const auto& [id, one] : queue_) sorted.emplace(one.ticket, id);
    std::vector<std::string> ids;
    for (const auto& [score, id] : sorted) ids.push_back(id);
    return ids;
}

// R13: its process listens, and it has polled within its last two intervals.
bool semaphore_model::is_alive(const waiter& one) const {
    return now_us_ - one.seen_us <= 2000 * one.wants.interval_ms && listened_.contains(one.wants.channel);
}

std::string semaphore_model::enqueue(const semaphore_step& step) {
    std::int64_t ticket = std::stoll(step.ticket);
    const auto place = queue_.find(step.id);
    if (ticket == 0 && place != queue_.end()) ticket = place->second.ticket;
    if (ticket == 0) {
        const auto ids = in_order();
        ticket = ids.empty() ? now_us_ : std::max(now_us_, queue_.at(ids.back()).ticket + 1);
    }
    if (queue_.empty()) queue_until_ms_ = 0;
    queue_until_ms_ = std::max(queue_until_ms_, now_ms() + step.keep_ms);
    queue_.insert_or_assign(step.id, waiter{ticket, step, now_us_});
    return std::to_string(ticket);
}

void semaphore_model::step_out(const std::string& id) {
    if (!queue_.contains(id)) return;
    first_has_left_ = first_has_left_ || in_order().front() == id;
    queue_.erase(id);
}

// Arrival order, also for large requests; one message for every process. The caller of an acquire has its answer
// instead.
void semaphore_model::serve(const semaphore_step& step) {
    const bool answer_tells = step.what == semaphore_step::kind::acquire;
    std::vector<message> told;
    bool anybody_admitted = false;
    bool anybody_left = std::exchange(first_has_left_, false);
    for (const std::string& id : out() < limit_->present ? in_order() : std::vector<std::string>{}) {
        const waiter one = queue_.at(id);
        const bool is_caller = answer_tells && id == step.id;
        const bool never = one.wants.permits > limit_->present;
        if ((!is_caller && !is_alive(one)) || holds_.contains(id) || never) {
            queue_.erase(id);
            anybody_left = true;
            if (never && !is_caller) publish(one.wants.channel, "poll " + id);
        } else if (out() + one.wants.permits <= limit_->present) {
            queue_.erase(id);
            admit(one.wants);
            anybody_admitted = true;
            if (is_caller) continue;
            auto entry = std::ranges::find_if(told, [&](const message& m) { return m.first == one.wants.channel; });
            if (entry == told.end()) entry = told.insert(told.end(), {one.wants.channel, "grant"});
            entry->second += " " + id + " " + std::to_string(mark_);
        } else {
            break;
        }
    }
    if (anybody_admitted) remember_mark(step.retention_ms);
    for (const auto& [channel, text] : told) publish(channel, text);
    if (anybody_admitted) {
        hurry_first(first_deadline() - now_ms());
    } else if (anybody_left) {
        hurry_first(-1);
    }
}

// §6: whoever is first must learn of the holders' deadlines in time.
void semaphore_model::hurry_first(std::int64_t within_ms) {
    if (queue_.empty()) return;
    const std::string first = in_order().front();
    const semaphore_step& wants = queue_.at(first).wants;
    if (wants.interval_ms > within_ms) publish(wants.channel, "poll " + first);
}

void semaphore_model::publish(const std::string& channel, std::string text) {
    if (listened_.contains(channel)) messages_.emplace_back(channel, std::move(text));
}

std::uint64_t semaphore_model::take_token(std::uint64_t floor) {
    return mark_ = std::max({static_cast<std::uint64_t>(now_us_), mark_ + 1, floor + 1});
}

void semaphore_model::remember_mark(std::int64_t retention_ms) {
    const std::int64_t ahead_us = static_cast<std::int64_t>(mark_) - now_us_;
    mark_until_ms_ = now_ms() + (ahead_us + 999) / 1000 + retention_ms;
}

// --- the steps --------------------------------------------------------------------------------------------

value semaphore_model::run(const semaphore_step& step) {
    using kind = semaphore_step::kind;
    first_has_left_ = false;
    if (step.what == kind::renew) return renew(step);
    remove_what_is_over();
    if (!limit_) limit_ = limit_facts{step.declared, step.declared};
    value answer = step.what == kind::acquire   ? acquire(step)
                   : step.what == kind::release ? release(step)
                                                : resize(step);
    settle(step);
    return answer;
}

value semaphore_model::granted(const semaphore_step& step) {
    admit(step);
    remember_mark(step.retention_ms);
    return list(1, {number(mark_)});
}

std::vector<value> semaphore_model::standing() const {
    std::set<std::pair<std::int64_t, std::string>> sorted;
    for (const auto& [id, one] : holds_) sorted.emplace(one.until_ms, id);
    if (sorted.empty()) return {value::make_integer(-1), value::make_bulk(""), value::make_integer(-1)};
    return {value::make_integer(sorted.rbegin()->first - now_ms()), value::make_bulk(sorted.rbegin()->second),
            value::make_integer(sorted.begin()->first - now_ms())};
}

value semaphore_model::refused(const semaphore_step&, std::string_view why, std::optional<std::int64_t> said) {
    auto facts = standing();
    facts.back() = value::make_bulk(std::string{why});
    if (said) facts.push_back(value::make_integer(*said));
    return list(0, std::move(facts));
}

value semaphore_model::acquire(const semaphore_step& step) {
    const std::string& id = step.id;
    if (holds_.contains(id)) {
        hold& mine = holds_.at(id);
        mine.until_ms = std::max(mine.until_ms, now_ms() + step.lease_ms);
        serve(step);
        return list(1, {number(token_of(id))});
    }
    if (limit_->declared != step.declared) {
        step_out(id);
        serve(step);
        if (!holds_.empty() || !queue_.empty()) return refused(step, "limit", limit_->declared);
        *limit_ = {step.declared, step.declared, limit_->version.empty() ? "" : id};
    }
    if (step.permits > limit_->present) {
        step_out(id);
        serve(step);
        return refused(step, "permits", limit_->present);
    }
    const auto fits = [&] { return out() + step.permits <= limit_->present; };
    if (queue_.empty() && fits()) return granted(step);
    std::string ticket;
    if (!step.channel.empty()) ticket = enqueue(step);
    serve(step);
    if (holds_.contains(id)) return list(1, {number(token_of(id))});
    if (step.channel.empty()) {
        if (fits() && queue_.empty()) return granted(step);
        return refused(step, fits() ? "reserved" : "held", {});
    }
    const auto facts = standing();
    const auto ids = in_order();
    const auto place = std::ranges::find(ids, id) - ids.begin();
    return list(2, {facts[0], facts[1], value::make_bulk(ticket), value::make_integer(place), number(mark_), facts[2]});
}

// Double release changes nothing: the token names the grant.
value semaphore_model::release(const semaphore_step& step) {
    const bool holds = holds_.contains(step.id);
    const bool named = holds && (step.token == 0 || step.token == token_of(step.id));
    if (named) holds_.erase(step.id);
    if (named || !holds) step_out(step.id);
    serve(step);
    if (!named) return list(0, {});
    return list(1, {value::make_integer(static_cast<std::int64_t>(queue_.size())),
                    value::make_integer(static_cast<std::int64_t>(holds_.size()))});
}

value semaphore_model::renew(const semaphore_step& step) {
    const auto found = holds_.find(step.id);
    if (found == holds_.end() || found->second.until_ms <= now_ms()) return list(0, {});
    found->second.until_ms = std::max(found->second.until_ms, now_ms() + step.lease_ms);
    if (limit_) limit_->until_ms = std::max(limit_->until_ms, last_deadline());
    return list(1, {});
}

// A late copy names a version that was replaced since.
value semaphore_model::resize(const semaphore_step& step) {
    const bool is_done = limit_->version == step.id;
    if (!is_done && limit_->declared != step.declared) {
        serve(step);
        if (!holds_.empty() || !queue_.empty()) return list(-1, {value::make_integer(limit_->declared)});
    }
    if (!is_done && limit_->version != step.replaces) {
        serve(step);
        return list(0, {value::make_bulk(limit_->version)});
    }
    if (!is_done) {
        *limit_ = {step.declared, step.new_limit, step.id};
        for (const std::string& id : in_order()) {
            const semaphore_step& wants = queue_.at(id).wants;
            if (wants.permits > limit_->present) publish(wants.channel, "poll " + id);
        }
    }
    serve(step);
    return list(1, {value::make_bulk(step.id)});
}

// --- the picture ------------------------------------------------------------------------------------------

std::string semaphore_model::dump(const semaphore_keys& keys) const {
    std::map<std::string, std::string> lines;
    const auto key = [&](const std::string& name, std::string_view type, std::int64_t until) {
        std::string& text = lines[name] = sim::in_quotes(name) + ' ' + std::string{type};
        text += " until " + std::to_string(until);
        return &text;
    };
    const auto field = [](std::string* text, const std::string& name, const std::string& content) {
        *text += ' ' + sim::in_quotes(name) + '=' + sim::in_quotes(content);
    };
    if (limit_) {
        std::string* text = key(keys.lock, "hash", limit_->until_ms);
        field(text, "declared", std::to_string(limit_->declared));
        field(text, "limit", std::to_string(limit_->present));
        field(text, "out", std::to_string(limit_->out));
        if (!limit_->version.empty()) field(text, "version", limit_->version);
    }
    if (!holds_.empty()) {
        std::set<std::pair<std::int64_t, std::string>> sorted;
        for (const auto& [id, one] : holds_) sorted.emplace(one.until_ms, id);
        std::string* text = key(keys.leases, "zset", last_deadline());
        for (const auto& [until, id] : sorted) *text += ' ' + sim::in_quotes(id) + '@' + std::to_string(until);
        text = key(keys.grants, "hash", last_deadline());
        for (const auto& [id, one] : holds_)
            field(text, id, std::to_string(one.permits) + ' ' + std::to_string(one.token));
    }
    if (!queue_.empty()) {
        std::string* order = key(keys.queue, "zset", queue_until_ms_);
        std::string* entries = key(keys.waiters, "hash", queue_until_ms_);
        for (const std::string& id : in_order()) {
            *order += ' ' + sim::in_quotes(id) + '@' + std::to_string(queue_.at(id).ticket);
        }
        for (const auto& [id, one] : queue_) {
            field(entries, id,
                  std::to_string(one.wants.lease_ms) + ' ' + std::to_string(one.wants.interval_ms) + ' ' +
                      std::to_string(one.seen_us) + ' ' + std::to_string(one.wants.floor) + ' ' +
                      std::to_string(one.wants.permits) + ' ' + one.wants.channel);
        }
    }
    if (mark_ != 0) *key(keys.fence, "string", mark_until_ms_) += ' ' + sim::in_quotes(std::to_string(mark_));
    std::string out;
    for (const auto& [name, text] : lines) out += text + '\n';
    return out;
}

}  // namespace holdfast::testing
