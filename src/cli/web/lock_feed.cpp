#include "cli/web/lock_feed.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace holdfast::cli {
namespace {

// What is left of a lease is told in whole milliseconds, so its end trembles from look to look.
constexpr std::int64_t tremble_ms = 50;

std::int64_t whole_ms(microseconds span) {
    return std::chrono::floor<milliseconds>(span).count();
}

// Not within a character.
std::string shortened(const std::string& text) {
    if (text.size() <= lock_feed::most_text) return text;
    std::size_t end = lock_feed::most_text;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return text.substr(0, end) + "…";
}

json facts(const std::string& id, const std::optional<client_facts>& client) {
    if (!client) return {{"id", id}};
    return {{"id", id},
            {"user", shortened(client->user)},
            {"host", shortened(client->host)},
            {"pid", shortened(client->pid)},
            {"program", shortened(client->program)}};
}

// A key may have any bytes. In this form it is text that needs no escapes, in JSON as in an address.
std::string web_key(const lock_ref& lock) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    constexpr std::string_view unescaped = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
    std::string result;
    for (const char c : lock.keys.lock()) {
        const auto byte = static_cast<unsigned char>(c);
        if (unescaped.find(c) != unescaped.npos) {
            result += c;
        } else {
            result += {'~', digits[byte >> 4U], digits[byte & 15U]};
        }
    }
    return result;
}

bool is_more_contended(const lock_state* one, const lock_state* other) {
    if (one->waiters.size() != other->waiters.size()) return one->waiters.size() > other->waiters.size();
    return one->oldest_wait() > other->oldest_wait();
}

void cut(json& list, json& total) {
    total = list.size();
    if (list.size() > lock_feed::most_parties) list.erase(list.begin() + lock_feed::most_parties, list.end());
}

}  // namespace

shared_text stream_event(std::string_view name, const json& data) {
    return std::make_shared<const std::string>("event: " + std::string(name) + "\ndata: " + one_line(data) + "\n");
}

shared_text lock_feed::add(web_look look) {
    if (!look.trouble.empty()) {
        const bool is_news = look.trouble != latest_.trouble;
        latest_.trouble = look.trouble;
        return is_news ? stream_event("trouble", {{"text", look.trouble}}) : nullptr;
    }
    const bool was_in_trouble = !latest_.trouble.empty();
    has_looked_ = true;
    latest_ = std::move(look);
    history_.add(latest_.locks, latest_.silent.empty());
    index_.clear();
    std::vector<const lock_state*> busy;
    for (std::size_t i = 0; i < latest_.locks.size(); ++i) {
        const lock_state& lock = latest_.locks[i];
        index_.emplace(web_key(lock.where), i);
        now_ = std::max(now_, lock.server_time);
        if (!lock.is_idle()) busy.push_back(&lock);
    }
    const std::size_t shown = std::min(busy.size(), most_rows);
    std::ranges::partial_sort(busy, busy.begin() + static_cast<std::ptrdiff_t>(shown), is_more_contended);

    json set = json::array();
    json gone = json::array();
    std::set<std::string> kept;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < shown; ++i) {
        const std::string key = web_key(busy[i]->where);
        json row = row_of(*busy[i], key);
        bytes += one_line(row).size();
        if (bytes > most_bytes) break;
        kept.insert(key);
        json& known = rows_[key];
        if (known == row) continue;
        set.push_back(row);
        known = std::move(row);
    }
    for (const auto& [key, row] : rows_) {
        if (!kept.contains(key)) gone.push_back(key);
    }
    std::erase_if(rows_, [&kept](const auto& row) { return !kept.contains(row.first); });
    const std::size_t hidden = busy.size() - kept.size();
    json silent = silent_servers();
    const bool is_news = was_in_trouble || !set.empty() || !gone.empty() || silent != silent_told_ || hidden != hidden_;
    silent_told_ = silent;
    hidden_ = hidden;
    if (!is_news) return nullptr;
    return stream_event("change", {{"now", now_ms()},
                                   {"set", std::move(set)},
                                   {"gone", std::move(gone)},
                                   {"silent", std::move(silent)},
                                   {"hidden", hidden}});
}

shared_text lock_feed::everything() const {
    json all = about_;
    json rows = json::array();
    for (const auto& [key, row] : rows_) rows.push_back(row);
    all.update({{"now", now_ms()},
                {"looked", has_looked_},
                {"locks", std::move(rows)},
                {"silent", silent_told_},
                {"hidden", hidden_},
                {"trouble", latest_.trouble}});
    return stream_event("state", all);
}

const lock_state* lock_feed::find(const std::string& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &latest_.locks[found->second];
}

json lock_feed::details_of(const std::string& key) const {
    const lock_state* const lock = find(key);
    if (lock == nullptr) return {};
    const lock_past* const past = history_.of(lock->where.keys.lock());
    json all = to_json(*lock);
    cut(all["holders"], all["holders_total"]);
    cut(all["waiters"], all["waiters_total"]);
    all["web_key"] = key;
    all["now"] = whole_ms(lock->server_time);
    all["history"] = to_json(past != nullptr ? *past : lock_past());
    return all;
}

json lock_feed::row_of(const lock_state& lock, const std::string& key) const {
    json row{{"key", key},
             {"name", lock.where.name.text()},
             {"raw", lock.where.naming == wire::key_naming::raw},
             {"mode", mode_of(lock)},
             {"holders", lock.holders.size()},
             {"waiters", lock.waiters.size()}};
    if (lock.limit) row["permits"] = {{"out", lock.permits_out()}, {"limit", lock.limit->present}};
    if (!lock.waiters.empty()) row["waiting_since"] = whole_ms(lock.server_time - lock.oldest_wait());
    if (lock.is_free()) return row;
    const lock_holder& first = lock.holders.front();
    row["holder"] = facts(first.id, first.client);
    if (!first.note.empty()) row["holder"]["note"] = shortened(first.note);
    if (is_kept(first)) row["holder"]["kept"] = true;
    if (first.token) row["token"] = std::to_string(*first.token);  // a number of a script has 53 bits
    if (first.held) row["since"] = whole_ms(lock.server_time - *first.held);
    if (lock.servers > 1) row["backing"] = {{"servers", first.backing}, {"of", lock.servers}};
    if (!first.left) return row;
    std::int64_t until = whole_ms(lock.server_time) + first.left->count();
    std::int64_t lease = first.left->count();  // as long as it was ever seen
    if (const auto known = rows_.find(key);
        known != rows_.end() && known->second.contains("until") && known->second["holder"]["id"] == first.id) {
        const std::int64_t told = known->second["until"];
        if (std::abs(told - until) <= tremble_ms) until = told;
        lease = std::max(lease, known->second["lease"].get<std::int64_t>());
    }
    row["until"] = until;
    row["lease"] = lease;
    return row;
}

json lock_feed::silent_servers() const {
    json silent = json::array();
    for (const silence& one : latest_.silent) silent.push_back({{"server", one.server}, {"error", one.why}});
    return silent;
}

std::int64_t lock_feed::now_ms() const {
    return whole_ms(now_);
}

}  // namespace holdfast::cli
