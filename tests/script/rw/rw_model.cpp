// The model's queue, its steps, and its picture of all keys.
#include "script/rw/rw_model.hpp"

#include <algorithm>

namespace holdfast::testing {

using sim::value;

namespace {

constexpr std::int64_t before_everybody = std::int64_t{1} << 53;

value list(std::int64_t verdict, std::vector<value> rest) {
    rest.insert(rest.begin(), value::make_integer(verdict));
    return value::make_array(std::move(rest));
}

value number(std::uint64_t of) {
    return value::make_bulk(std::to_string(of));
}

}  // namespace

// --- the queue --------------------------------------------------------------------------------------------

std::int64_t rw_model::waiter::score() const {
    return in_front() ? ticket - before_everybody : ticket;
}

std::string rw_model::ticket_of(const std::string& id) const {
    const auto found = queue_.find(id);
    return found == queue_.end() ? "0" : std::to_string(found->second.ticket);
}

std::vector<std::string> rw_model::in_order() const {
    std::set<std::pair<std::int64_t, std::string>> sorted;
    for (const auto& [id, one] : queue_) sorted.emplace(one.score(), id);
    std::vector<std::string> ids;
    for (const auto& [score, id] : sorted) ids.push_back(id);
    return ids;
}

// R13, R29: its process listens, and it has polled within its last two intervals.
bool rw_model::is_alive(const waiter& one) const {
    return now_us_ - one.seen_us <= 2000 * one.wants.interval_ms && listened_.contains(one.wants.channel);
}

std::string rw_model::enqueue(const rw_step& step) {
    std::int64_t ticket = std::stoll(step.ticket);
    const auto place = queue_.find(step.id);
    if (ticket == 0 && place != queue_.end()) ticket = place->second.ticket;
    if (ticket == 0) {
        const auto ids = in_order();
        ticket = ids.empty() ? now_us_ : std::max(now_us_, queue_.at(ids.back()).score() + 1);
    }
    if (queue_.empty()) queue_until_ms_ = 0;
    queue_until_ms_ = std::max(queue_until_ms_, now_ms() + step.keep_ms);
    queue_.insert_or_assign(step.id, waiter{ticket, step, now_us_});
    return std::to_string(ticket);
}

void rw_model::step_out(const std::string& id) {
    if (queue_.empty()) return;
    first_has_left_ = in_order().front() == id;
    queue_.erase(id);
}

// R29, R30: in the order of the queue, an upgrader before everybody; readers together.
std::vector<rw_model::candidate> rw_model::whose_turn_it_is(const rw_step& step, served& out) {
    std::vector<candidate> coming;
    std::vector<candidate> readers_behind_writers;
    std::optional<candidate> writer_behind_readers;
    std::size_t readers = hash_.readers.size();
    const auto ids = in_order();
    for (const std::string& id : ids) {
        const waiter& one = queue_.at(id);
        const char wants = one.wants.wants;
        const bool is_gone = id != step.id && !is_alive(one);
        if (is_gone || (wants == 'u' && !(hash_.is_read_by(id) && is_held_by(id)))) {
            first_has_left_ = first_has_left_ || id == ids.front();
            queue_.erase(id);
        } else if (wants == 'r' && step.prefer == "writers") {
            readers_behind_writers.push_back({id, one, 'r'});
        } else if (wants == 'r') {
            coming.push_back({id, one, 'r'});
            ++readers;
        } else if (wants == 'w' && step.prefer == "readers") {
            if (!writer_behind_readers) writer_behind_readers = candidate{id, one, 'w'};
        } else if (wants == 'u' ? is_sole_reader(id) && readers == 1 : readers == 0) {
            coming.push_back({id, one, wants == 'u' ? 'b' : 'w'});
            return coming;
        } else {
            out = {wants, id};
            return coming;
        }
    }
    for (candidate& each : readers_behind_writers) coming.push_back(std::move(each));
    if (readers == 0 && coming.empty() && writer_behind_readers) coming.push_back(*writer_behind_readers);
    return coming;
}

rw_model::served rw_model::serve(const rw_step& step) {
    served out;
    if (hash_.writer.empty() && !queue_.empty()) {
        const auto coming = whose_turn_it_is(step, out);
        if (!coming.empty()) {
            let_in(step, coming);
            return out;
        }
    }
    // §6: a holder of another program tells nobody when it leaves.
    if (first_has_left_ || (somebody_left_ && foreign_)) hurry_first(-1);
    return out;
}

// R32: one message for every process, however many of its waiters come in. The caller has its answer instead,
// where that tells.
void rw_model::let_in(const rw_step& step, const std::vector<candidate>& coming) {
    std::vector<message> told;
    std::int64_t shortest = coming.front().as.wants.lease_ms;
    for (const candidate& one : coming) {
        const rw_step& wants = one.as.wants;
        queue_.erase(one.id);
        admit(one.id, one.shape, wants.lease_ms, wants.floor);
        shortest = std::min(shortest, wants.lease_ms);
        if (one.id == step.id && answer_tells_) continue;
        auto entry = std::ranges::find_if(told, [&](const message& m) { return m.first == wants.channel; });
        if (entry == told.end()) entry = told.insert(told.end(), {wants.channel, "grant"});
        entry->second += " " + one.id + " " + std::to_string(mark_);
    }
    remember_mark(step.retention_ms);
    for (const auto& [channel, text] : told) publish(channel, text);
    hurry_first(foreign_ ? -1 : shortest);
}

// §6: whoever is first must learn of the holders' deadlines in time.
void rw_model::hurry_first(std::int64_t within_ms) {
    if (queue_.empty()) return;
    const std::string first = in_order().front();
    const rw_step& wants = queue_.at(first).wants;
    if (wants.interval_ms > within_ms) publish(wants.channel, "poll " + first);
}

void rw_model::publish(const std::string& channel, std::string text) {
    if (listened_.contains(channel)) messages_.emplace_back(channel, std::move(text));
}

void rw_model::remember_mark(std::int64_t retention_ms) {
    const std::int64_t ahead_us = static_cast<std::int64_t>(mark_) - now_us_;
    mark_until_ms_ = now_ms() + (ahead_us + 999) / 1000 + retention_ms;
}

// --- the steps -------------------------------------------------------------------------------------------

value rw_model::run(const rw_step& step) {
    using kind = rw_step::kind;
    if (step.what > kind::cancel) return foreign(step);
    put_right();
    answer_tells_ = true;
    switch (step.what) {
        case kind::acquire:
            return acquire(step);
        case kind::release:
            return release(step);
        case kind::renew:
            return renew(step);
        default:
            return cancel(step);
    }
}

value rw_model::granted(const rw_step& step, char shape) {
    step_out(step.id);
    admit(step.id, shape, step.lease_ms, step.floor);
    write_down();
    remember_mark(step.retention_ms);
    hurry_first(step.lease_ms);
    return has_it(mark_);
}

value rw_model::has_it(std::uint64_t token) const {
    return with_cut(list(1, {number(token)}));
}

// Behind the clock's place, which is empty here: no token is proposed.
value rw_model::with_cut(value answer) const {
    if (!cut_ms_) return answer;
    answer.items.push_back(value::make_bulk(""));
    answer.items.push_back(value::make_integer(*cut_ms_));
    return answer;
}

value rw_model::refused(const rw_step& step, std::string_view why) {
    write_down();
    auto facts = standing(why == "mode" ? std::string{} : step.id);
    facts.back() = value::make_bulk(std::string{why});
    return list(0, std::move(facts));
}

value rw_model::acquire(const rw_step& step) {
    const std::string& id = step.id;
    const bool writes = hash_.writer == id;
    // R33: a copy of the request that got what is lost by now does not make it good, nor is it told.
    if (is_lost_by(id) && step.wants != 'u' && (writes || hash_.is_read_by(id))) {
        if (step.wants == 'w' && !writes) return refused(step, "mode");
        refresh(id, step.wants == 'r' && writes ? 'b' : holds_.at(id).shape, step.lease_ms);
        serve(step);
        write_down();
        return has_it(token_of(id));
    }
    // A downgrade of the same grant is still on its way: a new token, which that does not name (§4.3). Or the server
    // has lost it, and the grants since then.
    if (is_held_by(id) && step.wants == 'u' && writes && token_of(id) <= step.token) return granted(step, 'b');
    if (is_held_by(id) && (step.wants == 'r' || writes)) {  // R21, R22
        refresh(id, step.wants == 'r' && writes ? 'b' : holds_.at(id).shape, step.lease_ms);
        serve(step);
        write_down();
        return has_it(token_of(id));
    }
    if (is_held_by(id) && step.wants == 'w') return refused(step, "mode");
    if (step.wants == 'u' && (!is_held_by(id) || token_of(id) != step.token)) {
        answer_tells_ = false;
        serve(step);
        write_down();
        return list(-1, {});
    }
    const auto may_come_in = [&] {
        return hash_.writer.empty() && (step.wants == 'r' || (step.wants == 'w' && hash_.readers.empty()));
    };
    if (step.wants == 'u' && is_sole_reader(id)) return granted(step, 'b');  // R22
    if (queue_.empty() && may_come_in()) return granted(step, step.wants);

    const bool waits = !step.channel.empty();
    if (waits && step.ticket != "0") enqueue(step);
    const served line = serve(step);
    if (is_held_by(id) && (step.wants != 'u' || hash_.writer == id)) {
        write_down();
        return has_it(token_of(id));
    }
    if (step.wants == 'u' && line.blocked_for == 'u' && line.blocked_by != id) {
        queue_.erase(id);
        return refused(step, "deadlock");
    }
    if (line.blocked_for == 0 && may_come_in()) return granted(step, step.wants);
    if (!waits) {
        return refused(step, !hash_.writer.empty() ? "writing" : step.wants == 'r' ? "reserved" : "reading");
    }
    const std::string ticket = step.ticket == "0" ? enqueue(step) : step.ticket;
    write_down();
    const auto facts = standing(step.id);
    const auto ids = in_order();
    const auto place = std::ranges::find(ids, id) - ids.begin();
    return with_cut(
        list(2, {facts[0], facts[1], value::make_bulk(ticket), value::make_integer(place), number(mark_), facts[2]}));
}

value rw_model::others_hold(const rw_step&) {
    const auto facts = standing({});
    return list(-1, {facts[0], facts[1]});
}

// R23, R24, R27
value rw_model::release(const rw_step& step) {
    const bool holds = holds_.contains(step.id);
    const bool lost = is_lost_by(step.id);
    const bool named = holds && (step.token == 0 || step.token == token_of(step.id));
    const bool meant = named && !lost;
    if (named && step.left_over.empty()) {
        take_out(step.id);
    } else if (meant) {
        const bool writes = hash_.writer == step.id;
        if (writes && step.left_over == "r") hash_.writer.clear(), hash_.writer_count = 0;
        if (writes && step.left_over == "w") hash_.remove_reader(step.id);
        refresh(step.id, writes ? step.left_over[0] : 'r', step.lease_ms);
    }
    if (step.left_over.empty() && (named || !holds)) step_out(step.id);
    const bool nobody = lost || !hash_.exists();
    answer_tells_ = false;
    serve(step);
    write_down();
    if (meant) {
        return list(1, {value::make_integer(static_cast<std::int64_t>(in_queue())),
                        value::make_integer(static_cast<std::int64_t>(holders()))});
    }
    return nobody ? list(0, {}) : others_hold(step);
}

// R25
value rw_model::renew(const rw_step& step) {
    if (is_held_by(step.id)) refresh(step.id, holds_.at(step.id).shape, step.lease_ms);
    if (others_changed_) serve(step);
    write_down();
    if (is_held_by(step.id)) {
        const hold& mine = holds_.at(step.id);
        value answer = list(1, {value::make_bulk(std::string(1, mine.shape)), number(mine.token)});
        if (cut_ms_) answer.items.push_back(value::make_integer(*cut_ms_));
        return answer;
    }
    return hash_.exists() && !is_lost_by(step.id) ? others_hold(step) : list(0, {});
}

// R26
value rw_model::cancel(const rw_step& step) {
    step_out(step.id);
    serve(step);
    write_down();
    if (!is_held_by(step.id)) return list(0, {});
    const hold& mine = holds_.at(step.id);
    return list(1, {value::make_bulk(std::string(1, mine.shape)), number(mine.token)});
}

// --- the picture -----------------------------------------------------------------------------------------

std::string rw_model::dump(const rw_keys& keys) const {
    std::map<std::string, std::string> lines;
    const auto key = [&](const std::string& name, std::string_view type, std::optional<std::int64_t> until) {
        std::string& text = lines[name] = sim::in_quotes(name) + ' ' + std::string{type};
        text += until ? " until " + std::to_string(*until) : " forever";
        return &text;
    };
    const auto field = [](std::string* text, const std::string& name, const std::string& content) {
        *text += ' ' + sim::in_quotes(name) + '=' + sim::in_quotes(content);
    };
    if (hash_.exists()) {
        std::map<std::string, std::string> fields{{"mode", hash_.writer.empty() ? "read" : "write"}};
        int total = 0;
        for (const auto& [id, count] : hash_.readers) fields["r:" + id] = std::to_string(count), total += count;
        if (total > 0) fields["rcount"] = std::to_string(total);
        if (!hash_.writer.empty()) {
            fields["writer"] = hash_.writer;
            fields["wcount"] = std::to_string(hash_.writer_count);
        }
        std::string* text = key(keys.lock, "hash", hash_.until_ms);
        for (const auto& [name, content] : fields) field(text, name, content);
    }
    if (const auto all = deadlines(); !all.empty()) {
        std::string* text = key(keys.leases, "zset", all.rbegin()->first);
        for (const auto& [until, id] : all) *text += ' ' + sim::in_quotes(id) + '@' + std::to_string(until);
        if (!holds_.empty() || foreign_until_) text = key(keys.grants, "hash", all.rbegin()->first);
        if (foreign_until_) field(text, "foreign", foreign_counts_);
        for (const auto& [id, one] : holds_)
            field(text, id, std::string(1, one.shape) + ' ' + std::to_string(one.token) + (one.lost ? " lost" : ""));
    }
    if (!queue_.empty()) {
        std::string* order = key(keys.queue, "zset", queue_until_ms_);
        std::string* entries = key(keys.waiters, "hash", queue_until_ms_);
        for (const std::string& id : in_order()) {
            *order += ' ' + sim::in_quotes(id) + '@' + std::to_string(queue_.at(id).score());
        }
        for (const auto& [id, one] : queue_) {
            field(entries, id,
                  std::to_string(one.wants.lease_ms) + ' ' + std::to_string(one.wants.interval_ms) + ' ' +
                      std::to_string(one.seen_us) + ' ' + std::to_string(one.wants.floor) + ' ' + one.wants.wants +
                      ' ' + one.wants.channel);
        }
    }
    if (mark_ != 0) *key(keys.fence, "string", mark_until_ms_) += ' ' + sim::in_quotes(std::to_string(mark_));
    std::string out;
    for (const auto& [name, text] : lines) out += text + '\n';
    return out;
}

}  // namespace holdfast::testing
