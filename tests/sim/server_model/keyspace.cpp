#include "server_model/keyspace.hpp"

#include <algorithm>
#include <utility>

#include "server_model/numbers.hpp"
#include "server_model/value.hpp"

namespace holdfast::sim {
namespace {

bool expired(const entry& e, keyspace::instant at) {
    return e.expires_ms != no_expiry && at.now_ms > e.expires_ms;
}

std::string describe(const std::string& data) {
    return in_quotes(data);
}

std::string describe(const field_map& data) {
    std::vector<std::pair<std::string, std::string>> fields{data.in_order().begin(), data.in_order().end()};
    std::sort(fields.begin(), fields.end());
    std::string out;
    for (const auto& [field, text] : fields) out += ' ' + in_quotes(field) + '=' + in_quotes(text);
    return out.substr(1);
}

std::string describe(const sorted_set& data) {
    std::string out;
    for (const auto& [score, member] : data.in_order()) out += ' ' + in_quotes(member) + '@' + format_double(score);
    return out.substr(1);
}

std::string describe(const member_set& data) {
    std::string out;
    for (const auto& member : data) out += ' ' + in_quotes(member);
    return out.substr(1);
}

}  // namespace

std::string_view type_name(const entry& e) {
    static constexpr std::string_view names[] = {"string", "hash", "zset", "set"};
    return names[e.data.index()];
}

entry* keyspace::find(std::string_view key, instant at) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    if (!expired(found->second, at)) return &found->second;
    if (at.as == role::primary) entries_.erase(found);
    return nullptr;
}

entry& keyspace::insert(std::string_view key, entry fresh) {
    return entries_.insert_or_assign(std::string{key}, std::move(fresh)).first->second;
}

bool keyspace::erase(std::string_view key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    entries_.erase(found);
    return true;
}

void keyspace::remove_expired(instant at) {
    std::erase_if(entries_, [at](const auto& each) { return expired(each.second, at); });
}

auto keyspace::living_entries(instant at) const -> std::vector<const item*> {
    std::vector<const item*> found;
    for (const item& each : entries_) {
        if (!expired(each.second, at)) found.push_back(&each);
    }
    std::sort(found.begin(), found.end(), [](const item* a, const item* b) { return a->first < b->first; });
    return found;
}

std::optional<std::int64_t> keyspace::first_expiry_ms(instant at) const {
    std::optional<std::int64_t> first;
    for (const item& each : entries_) {
        const std::int64_t expires = each.second.expires_ms;
        if (expires != no_expiry && !expired(each.second, at)) first = std::min(first.value_or(expires), expires);
    }
    return first;
}

std::string keyspace::dump(instant at) const {
    std::string out;
    for (const item* each : living_entries(at)) {
        const entry& e = each->second;
        out += in_quotes(each->first) + ' ' + std::string{type_name(e)};
        out += e.expires_ms == no_expiry ? " forever " : " until " + std::to_string(e.expires_ms) + ' ';
        out += std::visit([](const auto& data) { return describe(data); }, e.data) + '\n';
    }
    return out;
}

}  // namespace holdfast::sim
