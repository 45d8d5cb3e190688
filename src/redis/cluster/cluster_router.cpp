#include "redis/cluster/cluster_router.hpp"

#include "base/assert.hpp"
#include "redis/cluster/cluster_parts.hpp"
#include "redis/resp/error_reply.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

constexpr std::chrono::milliseconds shortest_rest{5};
constexpr std::chrono::milliseconds longest_rest{200};
constexpr unsigned most_rest_doublings = 6;
constexpr std::chrono::seconds half_runs_remembered_for{1};

}  // namespace

cluster_router::cluster_router(server_settings cluster, std::vector<server_address> seeds, link_maker& links,
                               router_listener& told, std::uint64_t jitter_seed)
    : cluster_(std::move(cluster)),
      seeds_(std::move(seeds)),
      maker_(links),
      told_(told),
      jitter_(jitter_seed),
      question_(std::make_unique<map_question>(*this)) {
    HOLDFAST_ASSERT(!seeds_.empty());
}

cluster_router::~cluster_router() = default;

void cluster_router::start(instant now) {
    want_map();
    on_timer(now);
}

void cluster_router::submit(command& request, instant now) {
    HOLDFAST_ASSERT(request.life() == command::state::idle || request.life() == command::state::done);
    routing::begin(request);
    if (closed_) return routing::fail(request, {errc::client_closed, cluster_.display()}, now);
    if (!must_queue(request) && hand_over(request, now)) return;
    routing::set_waiting(request);
    line_.add(request);
    want_target(request, now);
}

bool cluster_router::withdraw(command& request) {
    if (request.life() != command::state::waiting) return false;
    bool found = line_.remove(request);
    for (const auto& [address, each] : links_) {
        if (found) break;
        if (each->session().is_waiting(request)) return each->session().withdraw(request);
        found = each->asked.remove(request);
    }
    HOLDFAST_ASSERT(found);  // a waiting command is in a line
    routing::set_idle(request);
    return true;
}

// Null: there is no link to it yet. Anybody will do for what has no key; and for what is nobody's by the map, because
// some servers leave out slots that were taken over: whoever knows better says MOVED, and all others that they are
// down.
cluster_router::link* cluster_router::target(const command& request) const {
    if (!map_) return nullptr;
    const std::string_view key = request.first_key();
    const server_address* const address = key.empty() ? some_primary() : whom_to_ask(slot_of(key));
    return address == nullptr ? nullptr : find_link(*address);
}

const server_address* cluster_router::whom_to_ask(hash_slot slot) const {
    const server_address* const owner = map_ ? map_->owner(slot) : nullptr;
    return owner == nullptr ? some_primary() : owner;
}

// One that can be asked; null if there is none.
const server_address* cluster_router::some_primary() const {
    if (!map_) return nullptr;
    for (const server_address& address : map_->primaries()) {
        if (const link* const each = find_link(address); each != nullptr && each->serves()) return &address;
    }
    return nullptr;
}

bool cluster_router::hand_over(command& request, instant now) {
    link* const there = target(request);
    if (there == nullptr || !there->serves()) return false;
    routing::set_idle(request);
    there->session().submit(request, now);
    return true;
}

void cluster_router::put_back(command& request, instant now) {
    routing::set_idle(request);  // forgets that it was sent elsewhere this once
    routing::set_waiting(request);
    line_.add_before_new(request);
    flush_due_ = true;
    want_target(request, now);
}

// A link for it is made, or made sooner.
void cluster_router::want_target(const command& request, instant now) {
    const std::string_view key = request.first_key();
    if (map_ && key.empty()) {
        if (target(request) == nullptr) dial_some_of(map_->primaries(), now);
        return;
    }
    want_link(slot_of(key), now);
}

void cluster_router::want_link(hash_slot slot, instant now) {
    if (closed_) return;
    const server_address* const owner = map_ ? map_->owner(slot) : nullptr;
    if (owner == nullptr) return want_map();
    link_to(*owner).session().hurry(now);
}

// To whoever owns its key now.
void cluster_router::send_again(command& request, failure why, instant now) {
    if (!routing::may_hop(request)) return rest(request, std::move(why), now);
    if (must_queue(request) || !hand_over(request, now)) put_back(request, now);
}

void cluster_router::rest(command& request, failure why, instant now) {
    const unsigned rested_before = routing::begin_rest(request);
    const bool passes = routing::passes_others(request);
    rest_slot(slot_of(request.first_key()), {.before = rested_before, .of_one_that_passes = passes}, std::move(why),
              now);
    put_back(request, now);
}

// One that passes others puts them off no longer than itself.
void cluster_router::rest_slot(hash_slot slot, rest_due due, failure why, instant now) {
    const std::chrono::nanoseconds whole = std::min<std::chrono::nanoseconds>(
        shortest_rest * (1LL << std::min(due.before, most_rest_doublings)), longest_rest);
    const instant until = now + jitter_.spread(whole);
    slot_rest& it = rests_[slot];
    it.until = std::max(it.until, until);
    if (due.of_one_that_passes) it.until_for_those_that_pass = std::max(it.until_for_those_that_pass, until);
    rest_ends_at_ = std::min(rest_ends_at_, until);
    it.why = std::move(why);
}

bool cluster_router::must_rest(const command& request, instant now) const {
    const auto found = rests_.find(slot_of(request.first_key()));
    if (found == rests_.end()) return false;
    return !routing::passes_others(request) || now < found->second.until_for_those_that_pass;
}

bool cluster_router::refused(link& by, command& request, const reply_view& refusal, instant now) {
    if (dynamic_cast<own_command*>(&request) != nullptr) return false;
    const auto meant = read_redirect(refusal.text(), by.address());
    if (!meant) return false;
    failure why = classify_error(refusal.text(), by.session().settings().display());
    switch (meant->what) {
        case redirect::kind::moved:
            follow(by, request, *meant, std::move(why), now);
            return true;
        case redirect::kind::ask:
            ask_there(by, request, *meant, now);
            return true;
        case redirect::kind::try_again:
            if (routing::tells_if_moving(request)) return false;
            rest(request, std::move(why), now);
            return true;
        case redirect::kind::down:
            want_map();
            rest(request, std::move(why), now);
            return true;
        case redirect::kind::spoiled_link:
            want_map();
            put_back(request, now);
            by.session().distrust(std::move(why), now);
            return true;
        case redirect::kind::half_run:
            stopped_half_way(request, std::move(why), now);
            return true;
    }
    return false;
}

// Whoever asked will do so again, as after the loss of a link. There is no loss here that would slow him down, so his
// slot rests, the longer the more often this happens.
void cluster_router::stopped_half_way(command& request, failure why, instant now) {
    std::erase_if(half_runs_, [now](const auto& each) { return each.second.last + half_runs_remembered_for < now; });
    const hash_slot slot = slot_of(request.first_key());
    half_runs& those = half_runs_[slot];
    those.last = now;
    why.code = errc::moving;  // is why others wait
    rest_slot(slot, {.before = those.in_a_row++}, why, now);
    why.code = errc::outcome_unknown;
    routing::fail(request, why, now);
}

// It goes before whatever others ask when they hear that the slot has moved.
void cluster_router::follow(link& by, command& request, const redirect& meant, failure why, instant now) {
    learn_moved(by, meant, now);
    send_again(request, std::move(why), now);
    tell_new_primary(now);
}

void cluster_router::ask_there(link& by, command& request, const redirect& meant, instant now) {
    if (must_queue(request)) return put_back(request, now);  // behind those that were asked before it
    failure why{errc::moving, by.session().settings().display() + ": its slot is moving to " + to_text(meant.to)};
    if (!routing::may_hop(request) || meant.to == by.address()) return rest(request, std::move(why), now);
    if (!map_->is_primary(meant.to)) want_map();
    link& there = link_to(meant.to);
    if (there.serves()) return send_asking(there, request, now);
    if (there.up()) {  // it was a replica; if it is none any more, the map will say so
        want_map();
        return rest(request, std::move(why), now);
    }
    routing::set_waiting(request);
    there.asked.add(request);
    there.session().hurry(now);
}

// Channels first: the member where the slot is moving to would find nobody listening.
void cluster_router::send_asking(link& there, command& request, instant now) {
    const hash_slot slot = slot_of(request.first_key());
    for (channel_entry& each : channels_) {
        if (each.second.slot == slot && each.second.wanted) listen(each, there, way::asking, now);
    }
    routing::set_idle(request);
    routing::set_asking(request);
    there.session().submit(request, now);
}

// The owner who had said ASK is the owner no more.
void cluster_router::call_back_asked(const slot_bits& moved, instant now) {
    const auto has_moved = [&](const command& each) { return moved.has(slot_of(each.first_key())); };
    for (const auto& [address, each] : links_) {
        if (each->asked.empty()) continue;
        for (command* request : each->asked.take_if(has_moved)) put_back(*request, now);
    }
}

void cluster_router::end_rests(instant now) {
    if (now < rest_ends_at_) return;
    rest_ends_at_ = never;
    flush_due_ = true;
    slot_bits rested;
    std::erase_if(rests_, [&](const auto& each) {
        const auto& [slot, rest] = each;
        if (rest.until <= now) {
            rested.add(slot);
            return true;
        }
        const bool some_pass_later = rest.until_for_those_that_pass > now;
        rest_ends_at_ = std::min({rest_ends_at_, rest.until, some_pass_later ? rest.until_for_those_that_pass : never});
        return false;
    });
    if (!rested.empty()) listen_in(rested, now);
}

// Everything that can go goes, in order. Goes through all that wait, so only when a link has come up, a slot has rested
// or has another owner, or something was put back: not for every answer of the others while one primary is gone.
void cluster_router::flush(instant now) {
    flush_due_ = false;
    if (line_.empty()) return;
    const auto may_go = [this, now](const command& each) {
        link* const there = target(each);
        return there != nullptr && there->serves() && !must_rest(each, now);
    };
    for (command* request : line_.take_if(may_go)) hand_over(*request, now);
}

// All are over before the first is told: what that does may reach for another of them.
void cluster_router::fail_all(const std::deque<command*>& ended, const failure& why, instant now) {
    for (command* request : ended) routing::set_idle(*request);
    for (command* request : ended) routing::fail(*request, why, now);
}

void cluster_router::fail_due(instant now) {
    const auto nobody_is_due = [now](const command_queue& line) { return now < line.earliest_deadline(); };
    if (nobody_is_due(line_) && std::all_of(links_.begin(), links_.end(),
                                            [&](const auto& each) { return nobody_is_due(each.second->asked); })) {
        return;
    }
    std::deque<command*> due = line_.take_due(now);
    for (const auto& [address, each] : links_) {
        for (command* request : each->asked.take_due(now)) due.push_back(request);
    }
    for (command* request : due) routing::set_idle(*request);
    for (command* request : due) routing::fail(*request, why_not_up(slot_of(request->first_key())), now);
}

failure cluster_router::why_not_up(hash_slot slot) const {
    if (const auto found = rests_.find(slot); found != rests_.end()) return found->second.why;
    if (!map_) {
        if (!why_no_map_.detail.empty()) return why_no_map_;
        return {errc::unreachable, cluster_.display() + ": no member said before the deadline who owns what"};
    }
    if (map_->owner(slot) == nullptr) {
        return {errc::cluster_down,
                cluster_.display() + ": nobody owns slot " + std::to_string(static_cast<unsigned>(slot))};
    }
    const link* const there = find_link(*map_->owner(slot));
    if (there != nullptr && there->has_failed) return there->session().last_failure();
    return {errc::unreachable, cluster_.display() + ": not connected to the owner of the slot before the deadline"};
}

bool cluster_router::is_up(hash_slot slot) const noexcept {
    return facts(slot) != nullptr;
}

bool cluster_router::anybody_is_up() const noexcept {
    return some_primary() != nullptr;
}

const server_facts* cluster_router::facts(hash_slot slot) const noexcept {
    const server_address* const owner = map_ ? map_->owner(slot) : nullptr;
    const link* const there = owner == nullptr ? nullptr : find_link(*owner);
    return there != nullptr && there->serves() ? &there->session().facts() : nullptr;
}

void cluster_router::on_timer(instant now) {
    if (closed_) return;
    tell_news(now);
    fail_due(now);
    end_rests(now);
    if (flush_due_) flush(now);
    if (now >= map_due_at_) look_again(now);
    if (map_wanted_ && !question_->under_way() && now >= ask_map_at_) ask_map(now);
    tidy();
}

instant cluster_router::deadline() const noexcept {
    if (closed_) return never;
    instant earliest = std::min(line_.earliest_deadline(), map_due_at_);
    for (const auto& [address, each] : links_) earliest = std::min(earliest, each->asked.earliest_deadline());
    earliest = std::min(earliest, rest_ends_at_);
    if (map_wanted_ && !question_->under_way()) earliest = std::min(earliest, ask_map_at_);
    return earliest;
}

void cluster_router::close(instant now) {
    if (std::exchange(closed_, true)) return;
    for (const auto& [address, each] : links_) each->session().close(now);
    std::deque<command*> left = line_.take_all();
    for (const auto& [address, each] : links_) {
        for (command* request : each->asked.take_all()) left.push_back(request);
        maker_.close(each->session());
    }
    links_.clear();
    fail_all(left, {errc::client_closed, cluster_.display()}, now);
}

}  // namespace holdfast::redis
