#include "world/rw_state.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace holdfast::sim {
namespace {

template <class Number>
bool to_number(std::string_view text, Number& out) {
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out);
    return bad == std::errc() && end == text.data() + text.size();
}

void read_hash(rw_state& out, const entry& hash) {
    const auto* const fields = std::get_if<field_map>(&hash.data);
    if (fields == nullptr) return;
    out.exists = true;
    out.expires_ms = hash.expires_ms;
    for (const auto& [field, text] : fields->in_order()) {
        if (field == "mode") out.mode = text;
        if (field == "rcount") out.rcount = text;
        if (field == "writer") out.writer = text;
        if (field == "wcount") out.wcount = text;
        if (!field.starts_with("r:")) continue;
        std::int64_t count = 0;
        to_number(text, count);
        out.readers[field.substr(2)] = count;
    }
}

// "<shape> <token>", or "<shape> <token> lost"
rw_state::grant read_grant(std::string_view text) {
    constexpr std::string_view mark = " lost";
    rw_state::grant out;
    const bool lost = text.ends_with(mark);
    if (lost) text.remove_suffix(mark.size());
    if (text.size() < 3 || text[1] != ' ' || text[2] == '0' || !to_number(text.substr(2), out.token)) return {};
    const char shape = text[0];
    return shape == 'r' || shape == 'w' || shape == 'b' ? rw_state::grant{shape, out.token, lost} : rw_state::grant{};
}

// Corrects deadlines after a slot came from a member whose clock is behind: expiries moved as durations, deadlines are
// points in time of the other clock. See common/deadlines.lua. If the hash still ends with the last deadline, nothing
// has moved, whatever a corrupting client did to the expiry of the leases.
void read_by_our_clock(rw_state& out) {
    std::int64_t last = 0;
    for (const auto& [id, ends] : out.leases) last = std::max(last, ends);
    if (out.exists && out.expires_ms == last) return;
    if (out.leases_expire_ms == no_expiry || out.leases_expire_ms - last <= 1) return;
    for (auto& [id, ends] : out.leases) ends += out.leases_expire_ms - last;
}

// "lease interval seen floor kind channel"
char read_wish(std::string_view entry) {
    for (int word = 0; word < 4; ++word) {
        const auto space = entry.find(' ');
        if (space == std::string_view::npos) return 0;
        entry.remove_prefix(space + 1);
    }
    return entry.size() > 2 && entry[1] == ' ' ? entry[0] : '\0';
}

}  // namespace

char rw_state::held(const std::string& id) const {
    const auto lease = leases.find(id);
    if (lease == leases.end() || lease->second <= now_ms) return 0;
    const auto found = grants.find(id);
    return found == grants.end() ? '\0' : found->second.shape;
}

std::uint64_t rw_state::token_of(const std::string& id) const {
    const auto found = grants.find(id);
    return found == grants.end() ? 0 : found->second.token;
}

bool rw_state::is_lost(const std::string& id) const {
    const char shape = held(id);
    return shape != 0 && (grants.at(id).lost || in_hash(id) != shape);
}

char rw_state::in_hash(const std::string& id) const {
    const bool read = readers.contains(id);
    if (writer == id) return read ? 'b' : 'w';
    return read ? 'r' : '\0';
}

const rw_state::waiter* rw_state::find_waiter(const std::string& id) const {
    const auto found = std::find_if(queue.begin(), queue.end(), [&](const waiter& w) { return w.id == id; });
    return found == queue.end() ? nullptr : &*found;
}

std::int64_t gap_end_us(server& at, const std::string& gap_key) {
    const entry* const found = at.peek(gap_key);
    const auto* const text = found == nullptr ? nullptr : std::get_if<std::string>(&found->data);
    std::int64_t begins_us = 0, ends_us = 0;
    if (text == nullptr || !(std::istringstream(*text) >> begins_us >> ends_us)) return 0;
    if (begins_us > at.now_us() || ends_us - begins_us > 1'000'000) return 0;
    return ends_us > at.now_us() ? ends_us : 0;
}

rw_state read_rw_state(server& from, const wire::lock_keys& keys) {
    rw_state out;
    out.now_ms = from.now_us() / 1000;
    if (const entry* const hash = from.peek(keys.lock())) read_hash(out, *hash);
    if (const entry* const leases = from.peek(keys.leases())) {
        out.leases_expire_ms = leases->expires_ms;
        if (const auto* const set = std::get_if<sorted_set>(&leases->data)) {
            for (const auto& [score, id] : set->in_order())
                out.leases[std::string(id)] = static_cast<std::int64_t>(score);
            read_by_our_clock(out);
        }
    }
    if (const entry* const grants = from.peek(keys.grants())) {
        out.grants_expire_ms = grants->expires_ms;
        if (const auto* const all = std::get_if<field_map>(&grants->data)) {
            for (const auto& [id, text] : all->in_order()) {
                if (id != "kept") out.grants[id] = read_grant(text);  // says that marked holds may be among them
            }
        }
    }
    const entry* const queue = from.peek(keys.queue());
    const entry* const waiters = from.peek(keys.waiters());
    const auto* const wishes = waiters == nullptr ? nullptr : std::get_if<field_map>(&waiters->data);
    if (const auto* const order = queue == nullptr ? nullptr : std::get_if<sorted_set>(&queue->data)) {
        for (const auto& [score, id] : order->in_order()) {
            const std::string* const wish = wishes == nullptr ? nullptr : wishes->find(id);
            out.queue.push_back({std::string(id), wish == nullptr ? '\0' : read_wish(*wish)});
        }
    }
    if (const entry* const fence = from.peek(keys.fence())) {
        if (const auto* const text = std::get_if<std::string>(&fence->data)) out.fence = *text;
    }
    out.gap_until_ms = (gap_end_us(from, keys.gap()) + 999) / 1000;
    return out;
}

}  // namespace holdfast::sim
