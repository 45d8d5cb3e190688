// The model's holders: leases, holders of other programs, and the correction of what those programs changed.
#include <algorithm>
#include <numeric>

#include "script/rw/rw_model.hpp"
#include "wire/hold_id.hpp"

namespace holdfast::testing {

using wire::is_ours;

bool rw_model::hash::is_read_by(const std::string& id) const {
    return std::ranges::any_of(readers, [&](const auto& one) { return one.first == id; });
}

void rw_model::hash::remove_reader(const std::string& id) {
    std::erase_if(readers, [&](const auto& one) { return one.first == id; });
}

void rw_model::hash::remove(const std::string& id) {
    remove_reader(id);
    if (writer == id) {
        writer.clear();
        writer_count = 0;
    }
}

std::uint64_t rw_model::token_of(const std::string& id) const {
    const auto found = holds_.find(id);
    return found == holds_.end() ? 0 : found->second.token;
}

std::size_t rw_model::holders() const {
    const bool writes_only = !hash_.writer.empty() && !hash_.is_read_by(hash_.writer);
    return hash_.readers.size() + (writes_only ? 1 : 0);
}

bool rw_model::is_sole_reader(const std::string& id) const {
    return hash_.readers.size() == 1 && hash_.is_read_by(id);
}

std::set<std::pair<std::int64_t, std::string>> rw_model::deadlines() const {
    std::set<std::pair<std::int64_t, std::string>> all;
    for (const auto& [id, one] : holds_) all.emplace(one.until_ms, id);
    if (foreign_until_) all.emplace(*foreign_until_, "foreign");
    return all;
}

void rw_model::set_time(std::int64_t now_us) {
    now_us_ = now_us;
    forget_what_expired();
}

void rw_model::move_to_clock(std::int64_t now_us) {
    const std::int64_t ahead_ms = now_us / 1000 - now_ms();
    if (hash_.until_ms) *hash_.until_ms += ahead_ms;
    for (auto& [id, one] : holds_) one.until_ms += ahead_ms;
    if (foreign_until_) *foreign_until_ += ahead_ms;
    queue_until_ms_ += ahead_ms;
    mark_until_ms_ += ahead_ms;
    set_time(now_us);
}

// Keys that are gone because their time is over. A key lives through the millisecond of its expiry.
void rw_model::forget_what_expired() {
    if (hash_.until_ms && *hash_.until_ms < now_ms()) hash_ = {};
    const auto all = deadlines();
    if (!all.empty() && all.rbegin()->first < now_ms()) {
        holds_.clear();
        foreign_until_.reset();
    }
    if (queue_until_ms_ < now_ms()) queue_.clear();
    if (mark_until_ms_ < now_ms()) mark_ = 0;
}

// R28, R33: at the beginning of every step of ours.
void rw_model::put_right() {
    const bool had_leases = !holds_.empty() || foreign_until_.has_value();
    const bool moved = had_leases && (!hash_.exists() || hash_.theirs);
    others_changed_ = false;
    first_has_left_ = false;
    somebody_left_ = false;
    note_cut();

    std::vector<std::string> over;
    for (const auto& [id, one] : holds_) {
        if (one.until_ms <= now_ms()) over.push_back(id);
    }
    for (const auto& [id, count] : hash_.readers) {
        if (is_ours(id) && !holds_.contains(id)) over.push_back(id);
    }
    if (is_ours(hash_.writer) && !holds_.contains(hash_.writer)) over.push_back(hash_.writer);
    for (const std::string& id : over) take_out(id);
    others_changed_ = !over.empty();

    look_at_foreign_fields();
    restore_ours();
    wrote_ = others_changed_ || moved;
    if (foreign_until_ && !foreign_) {
        foreign_until_.reset();
        wrote_ = true;
    }
}

// Holders of other programs live by the hash's expiry as it was before we made it longer.
void rw_model::look_at_foreign_fields() {
    foreign_.reset();
    std::vector<std::string> found;
    for (const auto& [id, count] : hash_.readers) {
        if (!is_ours(id)) found.push_back(id);
    }
    if (!hash_.writer.empty() && !is_ours(hash_.writer)) found.push_back(hash_.writer);
    if (found.empty()) return;

    std::optional<std::int64_t> until = hash_.until_ms;
    if (until) ++*until;  // a key lives through the millisecond of its expiry
    if (until && foreign_until_) until = hash_.theirs ? std::max(*until, *foreign_until_) : *foreign_until_;
    if (until && *until <= now_ms()) {
        for (const std::string& id : found) hash_.remove(id);
        others_changed_ = true;
    } else {
        foreign_ = foreign_holder{found.front(), until};
    }
}

// What the grants say of the holders of other programs.
std::string rw_model::foreign_counts() const {
    const auto record = [](const std::string& name, int count) {
        return std::to_string(name.size()) + ':' + std::to_string(count) + ':' + name;
    };
    std::vector<std::string> all;
    for (const auto& [id, count] : hash_.readers) {
        if (!is_ours(id)) all.push_back(record("r:" + id, count));
    }
    if (!hash_.writer.empty() && !is_ours(hash_.writer)) all.push_back(record("writer " + hash_.writer, 1));
    std::ranges::sort(all);
    return std::accumulate(all.begin(), all.end(), std::string{});
}

// What the client should know: our renewals come too seldom for it.
void rw_model::note_cut() {
    cut_ms_.reset();
    if (!hash_.exists() || !hash_.until_ms) return;
    const auto all = deadlines();
    if (all.empty() || (hash_.theirs && *hash_.until_ms < all.rbegin()->first)) cut_ms_ = *hash_.until_ms - now_ms();
}

// Ours that are not in the hash are lost. They come back all the same, until they are released or over, so that nobody
// else of ours comes in who would meet one that does not know it yet. Beside another program's writer the lease has to
// do; a writer does not come back beside readers.
void rw_model::restore_ours() {
    for (const auto& [until, id] : deadlines()) {
        const auto found = holds_.find(id);
        if (found == holds_.end()) continue;
        const char shape = found->second.shape;
        const bool reads = hash_.is_read_by(id);
        if ((shape == 'w' || reads) && (shape == 'r' || hash_.writer == id)) continue;
        const bool another_writes = !hash_.writer.empty() && hash_.writer != id;
        const bool others_read = hash_.readers.size() > (reads ? 1U : 0U);
        if (another_writes && found->second.lost) continue;
        others_changed_ = true;
        if (!another_writes && shape != 'r' && others_read) {
            take_out(id);
            continue;
        }
        found->second.lost = true;
        if (!another_writes) put_in(id, shape);
    }
}

void rw_model::put_in(const std::string& id, char shape) {
    if (shape != 'w' && !hash_.is_read_by(id)) hash_.readers.emplace_back(id, 1);
    if (shape != 'r' && hash_.writer != id) {
        hash_.writer = id;
        hash_.writer_count = 1;
    }
}

void rw_model::take_out(const std::string& id) {
    hash_.remove(id);
    holds_.erase(id);
    wrote_ = true;
    somebody_left_ = true;
}

// §4.7: a token above the last one, above what the client has seen, and not before the server's time.
void rw_model::admit(const std::string& id, char shape, std::int64_t lease_ms, std::uint64_t floor) {
    mark_ = std::max({static_cast<std::uint64_t>(now_us_), mark_ + 1, floor + 1});
    const auto before = holds_.find(id);
    const std::int64_t until = before == holds_.end() ? 0 : before->second.until_ms;
    put_in(id, shape);
    holds_[id] = {shape, mark_, std::max(until, now_ms() + lease_ms)};
    wrote_ = true;
}

void rw_model::refresh(const std::string& id, char shape, std::int64_t lease_ms) {
    hold& mine = holds_.at(id);
    mine.shape = shape;
    mine.until_ms = std::max(mine.until_ms, now_ms() + lease_ms);
    put_in(id, shape);
    wrote_ = true;
}

// R28: the key lives as long as the longest lease. What a holder of another program may expect is written down.
void rw_model::write_down() {
    if (!wrote_) return;
    if (!hash_.exists()) {
        hash_ = {};
        holds_.clear();
        foreign_until_.reset();
        return;
    }
    if (foreign_ && foreign_->until_ms) {
        foreign_until_ = foreign_->until_ms;
        foreign_counts_ = foreign_counts();
    }
    const auto all = deadlines();
    const bool is_theirs = foreign_ && (!foreign_->until_ms || (is_written() && !is_ours(hash_.writer)));
    if (all.empty() || is_theirs) return;
    hash_.until_ms = all.rbegin()->first;
    hash_.theirs = false;
}

std::vector<sim::value> rw_model::standing(const std::string& apart_from) const {
    auto all = deadlines();
    std::erase_if(all, [&](const auto& one) { return one.second == apart_from; });
    std::optional<std::int64_t> first, last;
    if (!all.empty()) {
        first = all.begin()->first;
        last = all.rbegin()->first;
    }
    if (foreign_) {
        const auto ends = foreign_->until_ms;
        if (ends) first = std::min(*ends, first.value_or(*ends));
        last = ends ? std::optional{std::max(*ends, last.value_or(*ends))} : std::nullopt;
    }
    std::string holder = hash_.writer;
    if (holder.empty() && foreign_) holder = foreign_->name;
    if (holder.empty() && !all.empty()) holder = all.rbegin()->second;
    using sim::value;
    return {value::make_integer(last ? *last - now_ms() : -1), value::make_bulk(holder),
            value::make_integer(first ? std::max<std::int64_t>(*first - now_ms(), 0) : -1)};
}

// The flow charts of 000 and 002. Another program knows neither leases nor the queue.
sim::value rw_model::foreign(const rw_step& step) {
    using kind = rw_step::kind;
    const auto mine = std::ranges::find_if(hash_.readers, [&](const auto& one) { return one.first == step.id; });
    const bool reads = mine != hash_.readers.end();
    const bool writes = hash_.writer == step.id;
    bool done = false;
    bool sets_expiry = true;
    switch (step.what) {
        case kind::foreign_read:
            done = hash_.writer.empty() || writes;
            if (done && reads) ++mine->second;
            if (done && !reads) hash_.readers.emplace_back(step.id, 1);
            break;
        case kind::foreign_write:
            done = !hash_.exists() || writes || (hash_.writer.empty() && is_sole_reader(step.id));
            if (done) hash_.writer = step.id, ++hash_.writer_count;
            break;
        case kind::foreign_stop_reading:
            sets_expiry = false;
            done = reads;
            if (done && --mine->second == 0) hash_.remove_reader(step.id);
            break;
        case kind::foreign_stop_writing:
            sets_expiry = false;
            done = writes;
            if (done && --hash_.writer_count == 0) hash_.writer.clear();
            break;
        default:
            done = step.what == kind::foreign_renew_reading ? reads : writes;
    }
    if (!hash_.exists()) {
        hash_ = {};
    } else if (done && sets_expiry) {
        hash_.until_ms = now_ms() + step.lease_ms;
        hash_.theirs = true;
    }
    return sim::value::make_integer(done ? 1 : 0);
}

}  // namespace holdfast::testing
