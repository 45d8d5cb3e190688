#include "engine/engine.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

namespace holdfast::engine {

engine::engine(engine_settings settings, const std::vector<node_link>& nodes, random_source& random, observer& watcher)
    : settings_(settings),
      watcher_(watcher),
      client_(random),
      clock_(nodes.size()),
      holds_(nodes.size(), random),
      held_(settings_, holds_, nodes_, *this),
      acquisitions_(settings_, holds_, nodes_, held_, clock_, *this) {
    for (const node_link& node : nodes) {
        inputs_.emplace_back(*this, nodes_.size());
        nodes_.add(std::make_unique<node_agent>(node_settings{.request_timeout = settings_.request_timeout,
                                                              .fence_retention = settings_.fence_retention,
                                                              .lost_margin_percent = settings_.lost_margin_percent,
                                                              .clock_skew = settings_.clock_skew,
                                                              .most_renewals = settings_.most_renewals,
                                                              .server = node.server,
                                                              .listens = node.listens},
                                                node_surroundings{client_, random, clock_, *this}, *node.out));
    }
}

// --- the loop

namespace {

// Also if an effect throws (no memory for a handler): the next call goes on with the rest.
class running_now {
public:
    explicit running_now(bool& flag) noexcept : flag_(flag) { flag_ = true; }
    ~running_now() { flag_ = false; }
    running_now(const running_now&) = delete;
    running_now& operator=(const running_now&) = delete;

private:
    bool& flag_;
};

}  // namespace

void engine::run(instant now) {
    if (running_) return;  // an effect has led back here: the loop goes on with what was appended
    const running_now guard(running_);
    for (;;) {
        if (const node_event* const event = events_.next()) {
            take_event(*event, now);
        } else if (const effect* const what = effects_.next()) {
            carry_out(*what);
        } else {
            break;
        }
    }
    holds_.free_forgotten();
}

void engine::take_event(const node_event& event, instant now) {
    switch (event.what) {
        case node_event::kind::links_changed:
            return acquisitions_.on_links_changed(now);
        case node_event::kind::owners_changed:
            return acquisitions_.on_owners_changed();
        case node_event::kind::clock_read:
            return acquisitions_.on_clock_read(now);
        default:
            break;
    }
    hold& h = *event.at->whole;
    if (h.phase == hold_phase::forgotten) return;
    acquisitions_.answered(h);
    if (acquires(event, h, now)) own(h);
    settle(h);
}

// True: the caller has acquired it by this.
bool engine::acquires(const node_event& event, hold& h, instant now) {
    node_hold& n = *event.at;
    const bool is_held = h.phase == hold_phase::held;
    switch (event.what) {
        case node_event::kind::granted:
            return acquisitions_.on_granted(n, event.got, now);
        case node_event::kind::raised:
            return acquisitions_.on_raised(n, now);
        case node_event::kind::queued:
            acquisitions_.on_queued(n, now);
            return false;
        case node_event::kind::refused:
            on_refused(event, h, now);
            break;
        case node_event::kind::extended:
            if (is_held) held_.on_extended(n);
            break;
        case node_event::kind::lost:
            if (is_held) held_.on_lost(n, event.why, now);
            if (h.phase == hold_phase::wanted) acquisitions_.on_lost(n, now);
            break;
        case node_event::kind::renewed:
            if (is_held) held_.on_renewed(n, event, now);
            break;
        case node_event::kind::recalled:
            if (is_held) held_.on_recalled(n, now);
            return false;
        case node_event::kind::changed:
            if (is_held) held_.on_changed(n, event);
            return false;
        case node_event::kind::released:
            held_.on_released(n, event);
            return false;
        case node_event::kind::gone:
            held_.on_gone(n);
            return false;
        default:
            return false;
    }
    return acquisitions_.recount(h, now);
}

void engine::on_refused(const node_event& event, hold& h, instant now) {
    // Not of the upgrade that may be pending: a node was asked to vote for the hold, or could not keep its vote.
    if (h.phase == hold_phase::held && !event.at->counts()) return held_.on_refused(*event.at, *event.why_not, now);
    acquisitions_.on_refused(*event.at, *event.why_not, now);
}

// Nothing may be left of it.
void engine::settle(hold& h) {
    acquisitions_.answered(h);
    holds_.forget_if_gone(h);
}

namespace {

template <typename... Functions>
struct overloaded : Functions... {
    using Functions::operator()...;
};
template <typename... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

void send(const effects::send& what) {
    if (what.request->is_orphan()) return what.request->end();  // nobody wants it any more
    what.request->submitted();
    what.to->submit(*what.request);
}

void withdraw(const effects::withdraw& what) {
    const bool may_run = !what.request->is_orphan() || what.request->life() != redis::command::state::waiting;
    if (!may_run && what.to->withdraw(*what.request)) what.request->end();
}

void confirm(const effects::confirm& what) {
    if (what.request->is_orphan()) return what.request->end();
    what.request->submitted();
    what.to->confirm(*what.request, *what.lock, what.wanted);
}

void answer(const effects::answered& what) {
    if (!what.why_not) what.who->left_behind(what.holders, what.waiters);
    what.who->answered(what.why_not.copy());
}

}  // namespace

void engine::carry_out(const effect& what) {
    std::visit(overloaded{
                   [](const effects::send& e) { send(e); },
                   [](const effects::withdraw& e) { withdraw(e); },
                   [](const effects::confirm& e) { confirm(e); },
                   [](const effects::distrust& e) { e.node->distrust(e.why); },
                   [](const effects::subscribe& e) { e.at->subscribe(e.channel); },
                   [](const effects::unsubscribe& e) { e.at->unsubscribe(e.channel); },
                   [](const effects::want_link& e) { e.to->want_link(*e.lock); },
                   [this](const effects::acquired& e) {
                       watcher_.on_acquired(e.waited, e.got);
                       e.who->acquired(*e.what);
                   },
                   [this](const effects::reentered& e) {
                       watcher_.on_reentered();
                       e.who->acquired(*e.what);
                   },
                   [](const effects::refused& e) { e.who->refused(*e.why); },
                   [](const effects::answered& e) { answer(e); },
                   [](const effects::validity& e) {
                       if (e.of->listener() != nullptr) e.of->listener()->on_validity(e.of->valid_until());
                   },
                   [](const effects::token& e) {
                       if (e.of->listener() != nullptr) e.of->listener()->on_token(e.of->token());
                   },
                   [](const effects::lost& e) {
                       if (e.what->listener() != nullptr) e.what->listener()->on_lost(e.why);
                   },
                   [this](const effects::released& e) {
                       if (e.told != nullptr) e.told->on_gone();
                       watcher_.on_released(e.held);
                   },
                   [this](const effects::seen_refused&) { watcher_.on_refused(); },
                   [this](const effects::seen_renewed&) { watcher_.on_renewed(); },
                   [this](const effects::seen_renewal_failed& e) { watcher_.on_renewal_failed(e.why); },
                   [this](const effects::seen_lost& e) { watcher_.on_lost(e.lock->lock(), e.why); },
                   [this](const effects::seen_votes& e) { watcher_.on_votes(e.lock->lock(), e.what, e.count); },
               },
               what);
}

// --- owners

std::size_t engine::owned_lock_hash::operator()(const owned_lock& key) const noexcept {
    const auto owner = std::hash<std::uint64_t>{}(static_cast<std::uint64_t>(key.owner));
    return std::hash<std::string>{}(key.lock) ^ (owner * 0x9e3779b97f4a7c15U);
}

hold* engine::find(owner_id owner, const lock_keys& keys) {
    if (owner == owner_id::nobody) return nullptr;
    const auto found = owned_.find(owned_lock{owner, keys.lock()});
    return found == owned_.end() ? nullptr : found->second;
}

void engine::own(hold& h) {
    if (h.terms().owner == owner_id::nobody) return;
    owned_.emplace(owned_lock{h.terms().owner, h.terms().keys->lock()}, &h);
}

void engine::disown(const hold& h) {
    if (h.terms().owner == owner_id::nobody) return;
    const auto owned = owned_.find(owned_lock{h.terms().owner, h.terms().keys->lock()});
    if (owned != owned_.end() && owned->second == &h) owned_.erase(owned);
}

bool engine::reads_a_stripe(const acquire_terms& terms) {
    if (terms.want != access::exclusive || terms.owner == owner_id::nobody) return false;
    const std::span stripes(terms.keys.get(), terms.options.stripes);
    return std::ranges::any_of(stripes, [&](const lock_keys& stripe) {
        const hold* const mine = find(terms.owner, stripe);
        return mine != nullptr && mine->exclusive == 0;
    });
}

// --- requests

void engine::refuse(acquire_completion& request, errc code, std::string detail) {
    add(effects::refused{&request, rare(code, std::move(detail))});
}

void engine::acquire(acquire_completion& request, acquire_terms terms, instant now) {
    begin(request, terms, now);
    run(now);
}

void engine::begin(acquire_completion& request, const acquire_terms& terms, instant now) {
    if (reads_a_stripe(terms)) {
        return refuse(request, errc::would_deadlock, "the caller reads it, and a striped lock cannot be upgraded");
    }
    if (hold* const mine = find(terms.owner, *terms.keys)) return reenter(*mine, request, terms, now);
    acquisitions_.acquire(holds_.make(terms.of_hold()), request, terms.limit, now);
}

void engine::reenter(hold& mine, acquire_completion& request, const acquire_terms& terms, instant now) {
    held_.lose_if_ran_out(mine, now);
    if (mine.phase != hold_phase::held) {
        return refuse(request, errc::lost, "the hold was lost; release it as often as it was taken first");
    }
    if (mine.options().kind != terms.options.kind) {
        return refuse(request, errc::wrong_type, "the caller holds a lock of another kind by this name");
    }
    if (terms.options.replicas > mine.options().replicas) {
        return refuse(request, errc::not_replicated, "the caller holds it by a lock that asks for fewer replicas");
    }
    if (terms.want == access::exclusive) return reenter_exclusive(mine, request, terms.limit, now);
    if (is_too_deep(mine)) return refuse(request, errc::too_deep);
    ++mine.shared;
    reentered(mine, request, now);
}

void engine::reentered(hold& h, acquire_completion& request, instant now) {
    if (h.options().renewing == renewal::none) held_.renew_nodes(h, now);
    add(effects::reentered{&request, &h});
}

void engine::upgrade(hold& h, acquire_completion& request, patience limit, instant now) {
    held_.lose_if_ran_out(h, now);
    reenter_exclusive(h, request, limit, now);
    run(now);
}

void engine::reenter_exclusive(hold& h, acquire_completion& request, patience limit, instant now) {
    if (h.phase != hold_phase::held) return refuse(request, errc::lost);
    if (is_too_deep(h)) return refuse(request, errc::too_deep);
    if (h.exclusive > 0) {
        ++h.exclusive;
        return reentered(h, request, now);
    }
    if (h.options().upgrading == upgrades::refused) {
        return refuse(request, errc::would_deadlock, "a striped lock cannot be upgraded");
    }
    if (h.is_asked_for()) return refuse(request, errc::too_many, "an upgrade of this hold is under way");
    acquisitions_.upgrade(h, request, limit, now);
}

void engine::cancel(acquire_completion& request, errc why, instant now) {
    hold* const h = request.pending_hold;
    if (h == nullptr) return;
    acquisitions_.fail(*h, {why, "", {}, {}}, now);
    settle(*h);
    run(now);
}

void engine::release(hold& h, access level, hold_completion* request, instant answer_by, instant now) {
    held_.release(h, level, request, answer_by, now);
    if (h.phase == hold_phase::leaving) disown(h);
    settle(h);
    run(now);
}

void engine::downgrade(hold& h, hold_completion& request, instant answer_by, instant now) {
    ++h.shared;
    release(h, access::exclusive, &request, answer_by, now);
}

void engine::renew(hold& h, hold_completion& request, instant now) {
    held_.renew(h, request, now);
    run(now);
}

void engine::keep_listening(const lock_keys& keys, instant now) {
    for (const auto& each : nodes_) each->keep_listening(keys);
    run(now);
}

void engine::abandon(owner_id owner, instant now) {
    std::vector<hold*> left;
    for (const auto& [key, held] : owned_) {
        if (key.owner == owner) left.push_back(held);
    }
    for (hold* const held : left) {
        disown(*held);
        held_.abandon(*held, now);
        settle(*held);
    }
    run(now);
}

// --- events

void engine::mark_links_changed(const lock_set& which) {
    tell({.what = node_event::kind::links_changed});
    if (!nodes_.several()) return;
    for (hold& h : holds_.all()) {
        if (which.has(*h.terms().keys)) h.links_changed = true;
    }
}

void engine::on_link_up(std::size_t node, const node_facts& facts, const lock_set& which, instant now) {
    if (facts.clock) clock_.set(node, *facts.clock, now);
    nodes_[node].on_link_up(which, now);
    mark_links_changed(which);
    run(now);
}

void engine::on_link_down(std::size_t node, const lock_set& which, instant now) {
    nodes_[node].on_link_down(which);
    mark_links_changed(which);
    run(now);
}

void engine::on_owners_changed(instant now) {
    tell({.what = node_event::kind::owners_changed});
    run(now);
}

void engine::on_subscription_refused(std::size_t node, const failure& why, const lock_set& which, instant now) {
    nodes_[node].on_subscription_refused(why, which, now);
    run(now);
}

void engine::on_push(std::size_t node, const redis::reply_view& message, instant now) {
    nodes_[node].on_push(message, now);
    run(now);
}

void engine::on_timer(instant now) {
    for (const auto& each : nodes_) each->on_timer(now);
    run(now);
    while (hold* const due = holds_.take_due(now)) {
        held_.on_timer(*due, now);
        acquisitions_.on_timer(*due, now);
        settle(*due);
    }
    run(now);
}

instant engine::deadline() const noexcept {
    instant first = holds_.earliest();
    for (const auto& each : nodes_) first = std::min(first, each->deadline());
    return first;
}

void node_input::on_link_up(const node_facts& facts, const lock_set& which, instant now) {
    whole_.on_link_up(number_, facts, which, now);
}

void node_input::on_link_down(const lock_set& which, instant now) {
    whole_.on_link_down(number_, which, now);
}

void node_input::on_owners_changed(instant now) {
    whole_.on_owners_changed(now);
}

void node_input::on_subscription_refused(const failure& why, const lock_set& which, instant now) {
    whole_.on_subscription_refused(number_, why, which, now);
}

void node_input::on_push(const redis::reply_view& message, instant now) {
    whole_.on_push(number_, message, now);
}

}  // namespace holdfast::engine
