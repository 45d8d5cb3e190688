#include "engine/local/positions.hpp"

namespace holdfast::engine::local {

bool positions::writer_tries() const noexcept {
    return std::ranges::any_of(trying_, [](const claim& c) { return c.want == access::exclusive; });
}

void positions::ask(access mode, claim* tries, patience limit, effects& out) {
    asks_.push_back({++last_number_, mode, limit.deadline, tries});
    out.push_back({.what = effect::kind::ask, .mode = mode, .number = last_number_, .limit = limit});
}

void positions::add_try(claim& wish) noexcept {
    wish.is = claim::state::trying;
    trying_.push_back(wish);
}

void positions::give_up(const claim& tries, effects& out) {
    for (asked& one : asks_) {
        if (one.tries != &tries) continue;
        one.tries = nullptr;
        one.cancelled = true;
        out.push_back({.what = effect::kind::cancel, .number = one.number});
    }
}

std::optional<positions::answered> positions::take(std::uint64_t number) {
    const auto found = std::ranges::find(asks_, number, &asked::number);
    if (found == asks_.end()) return std::nullopt;
    const answered out{found->tries, found->tries == nullptr && !found->cancelled};
    asks_.erase(found);
    return out;
}

bool positions::is_answer_due(const claim& waiter) const noexcept {
    return std::ranges::any_of(asks_, [&](const asked& one) {
        return one.tries == nullptr && !one.cancelled && one.deadline <= waiter.limit.deadline;
    });
}

positions::demand positions::wanted(const waiting_claims& claims, const held* current, instant now) const noexcept {
    demand all;
    std::size_t served = current == nullptr ? 0 : current->can_serve(claims.size(), now);
    if (claims.size() <= served && (current == nullptr || current->mode == access::exclusive)) return all;
    const bool reads = current != nullptr && current->mode == access::shared;
    const claim* const first = claims.next();
    if (reads && (first == nullptr || first->want == access::exclusive) && settings_.prefer != preference::readers) {
        served = 0;  // readers behind a writer wait for the writer
    }
    const bool one_each = settings_.passes == 0 && contended_;
    for (const claim& c : claims) {
        if (served > 0 && (!reads || c.want == access::shared)) {
            --served;
            continue;
        }
        if (one_each || all.of(c.want) == 0) ++all.of(c.want);
        if (!one_each && settings_.prefer == preference::arrival) return all;
        if (!one_each && settings_.kind == lock_kind::mutex) return all;
    }
    return all;
}

void positions::place(waiting_claims& claims, const held* current, instant now, effects& out) {
    if (claims.empty() && asks_.empty()) return;
    // A try that waited for a renewal, and the hold is gone: its answer comes from the server.
    for (auto next = claims.begin(); current == nullptr && next != claims.end();) {
        claim& c = *next++;
        if (c.limit.wait != waiting::not_at_all) continue;
        claims.remove(c);
        add_try(c);
        ask_for(c, out);
    }
    demand missing = wanted(claims, current, now);
    const instant latest = claims.latest_deadline();
    for (asked& one : asks_) {
        if (one.tries != nullptr || one.cancelled) continue;
        if (missing.of(one.mode) == 0) {
            one.cancelled = true;
            out.push_back({.what = effect::kind::cancel, .number = one.number});
            continue;
        }
        --missing.of(one.mode);
        if (one.deadline >= latest) continue;
        one.deadline = latest;
        out.push_back({.what = effect::kind::extend, .number = one.number, .limit = {waiting::in_queue, latest}});
    }
    for (const access mode : {access::exclusive, access::shared}) {
        for (; missing.of(mode) > 0; --missing.of(mode)) ask(mode, nullptr, {waiting::in_queue, latest}, out);
    }
}

}  // namespace holdfast::engine::local
