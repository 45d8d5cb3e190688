#include "redis/cluster/cluster_commands.hpp"

#include "base/assert.hpp"
#include "redis/resp/error_reply.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

// A link that comes up later than this after the command was last written does not get it.
constexpr std::chrono::milliseconds ask_is_fresh_for{100};

// A member that dies or hangs during the greeting looks like one that expects TLS, or does not.
bool refuses_us_for_good(errc code) noexcept {
    return is_permanent(code) && code != errc::tls_expected && code != errc::tls_unexpected;
}

}  // namespace

cluster_commands::cluster_commands(const server_settings& cluster, const std::optional<slot_map>& map,
                                   cluster_links& links, map_watch& watch, slot_rests& rests,
                                   cluster_channels& channels, cluster_effects& effects)
    : cluster_(cluster),
      map_(map),
      links_(links),
      watch_(watch),
      rests_(rests),
      channels_(channels),
      effects_(effects) {}

void cluster_commands::submit(command& request, instant now) {
    if (!must_queue(request) && hand_over(request, now)) return;
    routing::set_waiting(request);
    queue_.add(request);
    want_target(request, now);
}

bool cluster_commands::withdraw(command& request) {
    if (request.life() != command::state::waiting) return false;
    bool found = queue_.remove(request);
    for (auto at = asked_.begin(); at != asked_.end() && !found; ++at) found = at->second.remove(request);
    if (found) {
        routing::set_idle(request);
        return true;
    }
    cluster_link* holder = nullptr;
    links_.for_each([&](cluster_link& each) { holder = each.is_waiting(request) ? &each : holder; });
    HOLDFAST_ASSERT(holder != nullptr);  // a waiting command is in a queue
    return holder->session().withdraw(request);
}

// Any primary takes a command without a key. Null: there is no link yet.
cluster_link* cluster_commands::target(const command& request) const {
    const std::string_view key = request.first_key();
    const server_address* const address = key.empty() ? links_.some_primary() : links_.whom_to_ask(slot_of(key));
    return address == nullptr ? nullptr : links_.find(*address);
}

bool cluster_commands::hand_over(command& request, instant now) {
    const cluster_link* const there = target(request);
    if (there == nullptr || !there->serves()) return false;
    routing::set_idle(request);
    there->session().submit(request, now);
    return true;
}

void cluster_commands::put_back(command& request, instant now) {
    routing::set_idle(request);  // forgets an ASK
    routing::set_waiting(request);
    queue_.add_before_new(request);
    flush_due_ = true;
    want_target(request, now);
}

void cluster_commands::want_target(const command& request, instant now) {
    const std::string_view key = request.first_key();
    if (!map_ || !key.empty()) return want_link(slot_of(key), now);
    if (target(request) == nullptr) links_.reach_some_of(map_->primaries(), now);
}

void cluster_commands::want_link(hash_slot slot, instant now) {
    const server_address* const owner = links_.owner(slot);
    if (owner == nullptr) return watch_.want();
    links_.reach(*owner, now);
}

// To the present owner of its key.
void cluster_commands::send_again(command& request, failure why, instant now) {
    if (!routing::may_hop(request)) return rest(request, std::move(why), now);
    if (must_queue(request) || !hand_over(request, now)) put_back(request, now);
}

void cluster_commands::rest(command& request, failure why, instant now) {
    const unsigned before = routing::begin_rest(request);
    rests_.begin(slot_of(request.first_key()), {.rests_before = before, .overtakes = routing::passes_others(request)},
                 std::move(why), now);
    put_back(request, now);
}

bool cluster_commands::refused(cluster_link& by, command& request, const reply_view& refusal, instant now) {
    const auto meant = read_redirect(refusal.text(), by.address());
    if (!meant) return false;
    failure why = classify_error(refusal.text(), by.display());
    switch (meant->what) {
        case redirect::kind::moved:
            if (watch_.learn(by, *meant)) {
                channels_.follow(slot_set(meant->slot), now);
                on_owners_changed(slot_set(meant->slot), now);
            }
            send_again(request, std::move(why), now);
            return true;
        case redirect::kind::ask:
            ask_there(by, request, *meant, now);
            return true;
        case redirect::kind::try_again:
            if (routing::tells_if_moving(request)) return false;
            rest(request, std::move(why), now);
            return true;
        case redirect::kind::down:
            watch_.want();
            rest(request, std::move(why), now);
            return true;
        case redirect::kind::spoiled_link:
            watch_.want();
            put_back(request, now);
            effects_.drop(by, std::move(why), drop_link::next::rest);
            return true;
        case redirect::kind::half_run:
            stop_half_way(request, std::move(why), now);
            return true;
    }
    return false;
}

void cluster_commands::stop_half_way(command& request, failure why, instant now) {
    why.code = errc::moving;  // why others wait
    rests_.begin_after_half_run(slot_of(request.first_key()), why, now);
    why.code = errc::outcome_unknown;
    effects_.fail(request, std::move(why));
}

void cluster_commands::ask_there(cluster_link& by, command& request, const redirect& meant, instant now) {
    if (must_queue(request)) return put_back(request, now);  // behind commands that were refused before it
    failure why{errc::moving, by.display() + ": its slot is moving to " + to_text(meant.to)};
    if (!routing::may_hop(request) || meant.to == by.address()) return rest(request, std::move(why), now);
    if (!map_->is_primary(meant.to)) watch_.want();
    cluster_link& there = links_.reach(meant.to, now);
    if (there.serves()) return send_asking(there, request, now);
    if (there.up()) {  // it was a replica; if it was promoted, the next map says so
        watch_.want();
        return rest(request, std::move(why), now);
    }
    routing::set_waiting(request);
    asked_[&there].add(request);
}

// Channels first: what the command wakes up must find its listeners there.
void cluster_commands::send_asking(cluster_link& there, command& request, instant now) {
    channels_.follow_ask(slot_of(request.first_key()), there, now);
    routing::set_idle(request);
    routing::set_asking(request);
    there.session().submit(request, now);
}

std::deque<command*> cluster_commands::take_asked(cluster_link& from) {
    auto found = asked_.extract(&from);
    return found ? found.mapped().take_all() : std::deque<command*>{};
}

void cluster_commands::on_link_up(cluster_link& which, instant now) {
    for (command* request : take_asked(which)) {
        if (!which.serves()) {
            rest(*request, {errc::moving, which.display() + " is a replica"}, now);
        } else if (now <= request->written_at() + ask_is_fresh_for) {
            send_asking(which, *request, now);
        } else {
            put_back(*request, now);
        }
    }
}

void cluster_commands::on_stranded(cluster_link& which, const std::deque<command*>& unwritten, const failure& why,
                                   instant now) {
    for (command* request : unwritten) {
        if (dynamic_cast<own_command*>(request) != nullptr) {
            routing::fail(*request, why, now);
        } else {
            put_back(*request, now);
        }
    }
    for (command* request : take_asked(which)) rest(*request, why, now);
    for (const command* request : queue_) {
        if (request->first_key().empty()) want_target(*request, now);  // any other primary will do
    }
    if (!map_ || !refuses_us_for_good(why.code)) return;
    effects_.fail_all(queue_.take_if([&](const command& each) { return target(each) == &which; }), why);
}

void cluster_commands::on_owners_changed(const slot_set& moved, instant now) {
    flush_due_ = true;
    const auto has_moved = [&](const command& each) { return moved.has(slot_of(each.first_key())); };
    for (auto& [link, queue] : asked_) {
        for (command* request : queue.take_if(has_moved)) put_back(*request, now);
    }
    std::erase_if(asked_, [](const auto& each) { return each.second.empty(); });
}

void cluster_commands::flush(instant now) {
    flush_due_ = false;
    if (queue_.empty()) return;
    const auto may_go = [this, now](const command& each) {
        const cluster_link* const there = target(each);
        return there != nullptr && there->serves() && !rests_.holds_back(each, now);
    };
    for (command* request : queue_.take_if(may_go)) hand_over(*request, now);
}

void cluster_commands::fail_due(instant now) {
    if (now < deadline()) return;
    const auto fail = [this](const std::deque<command*>& due) {
        for (command* request : due) effects_.fail(*request, why_not_up(slot_of(request->first_key())));
    };
    fail(queue_.take_due(now));
    for (auto& [link, queue] : asked_) fail(queue.take_due(now));
    std::erase_if(asked_, [](const auto& each) { return each.second.empty(); });
}

void cluster_commands::fail_all(const failure& why) {
    effects_.fail_all(queue_.take_all(), why);
    for (auto& [link, queue] : asked_) effects_.fail_all(queue.take_all(), why);
    asked_.clear();
}

void cluster_commands::fail_impatient(const failure& why) {
    const bool is_final = is_permanent(why.code);
    effects_.fail_all(queue_.take_if([&](const command& each) { return is_final || !each.waits_for_first_link(); }),
                      why);
}

instant cluster_commands::deadline() const noexcept {
    instant earliest = queue_.earliest_deadline();
    for (const auto& [link, queue] : asked_) earliest = std::min(earliest, queue.earliest_deadline());
    return earliest;
}

failure cluster_commands::why_not_up(hash_slot slot) const {
    if (const failure* const why = rests_.why(slot)) return *why;
    if (!map_) return watch_.why_unknown();
    if (map_->owner(slot) == nullptr) {
        return {errc::cluster_down,
                cluster_.display() + ": nobody owns slot " + std::to_string(static_cast<unsigned>(slot))};
    }
    const cluster_link* const there = links_.to_owner(slot);
    if (there != nullptr && there->has_failed) return there->session().last_failure();
    return {errc::unreachable, cluster_.display() + ": not connected to the owner of the slot before the deadline"};
}

}  // namespace holdfast::redis
