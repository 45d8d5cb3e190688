#include "engine/engine.hpp"

#include "engine/quorum/majority_watch.hpp"

#include "base/assert.hpp"

#include <functional>
#include <span>

namespace holdfast::engine {

engine::engine(engine_settings settings, const std::vector<node_link>& nodes, random_source& random,
               observer& observing)
    : settings_(settings),
      observer_(observing),
      client_(random),
      clock_(nodes.size()),
      holds_(nodes.size(), random),
      held_(settings_, holds_, nodes_, *this),
      acquisitions_(settings_, holds_, nodes_, held_, clock_, *this) {
    for (const node_link& node : nodes) {
        inputs_.emplace_back(*this, nodes_.size());
        nodes_.add(std::make_unique<node_agent>(node, node_surroundings{settings_, client_, random, clock_, *this}));
    }
}

// --- the loop

namespace {

// Whoever released the hold hears no more of it.
hold_listener* listener_of(const hold& h) noexcept {
    return h.is_released() ? nullptr : h.listener().get();
}

// Carries out an effect of each kind.
struct executor {
    observer& observing;
    instant now;

    void operator()(const effects::send& e) const {
        if (e.request->is_orphan()) return e.request->end();  // nobody wants it any more
        e.request->submitted();
        e.to->submit(*e.request);
    }
    void operator()(const effects::send_together& e) const { e.requests->submit_to(*e.to, now); }
    void operator()(const effects::withdraw& e) const {
        const bool may_run = !e.request->is_orphan() || e.request->life() != redis::command::state::waiting;
        if (!may_run && e.to->withdraw(*e.request)) e.request->end();
    }
    void operator()(const effects::confirm& e) const {
        if (e.request->is_orphan()) return e.request->end();
        e.request->submitted();
        e.to->confirm(*e.request, *e.lock, e.wanted);
    }
    void operator()(const effects::distrust& e) const { e.node->distrust(*e.why); }
    void operator()(const effects::subscribe& e) const { e.at->subscribe(*e.channel); }
    void operator()(const effects::unsubscribe& e) const { e.at->unsubscribe(*e.channel); }
    void operator()(const effects::want_link& e) const { e.to->want_link(*e.lock); }
    void operator()(const effects::acquired& e) const {
        observing.on_acquired(e.waited, e.granted_how);
        const life_step how_ended = e.granted_how == how::handed_over ? life_step::handed_over : life_step::acquired;
        observing.on_step(*e.what, e.upgrades ? life_step::upgraded : how_ended, e.waited);
        e.who->acquired(*e.what);
    }
    void operator()(const effects::reentered& e) const {
        observing.on_reentered();
        e.who->acquired(*e.what);
    }
    void operator()(const effects::refused& e) const { e.who->refused(*e.why); }
    void operator()(const effects::answered& e) const {
        if (e.why_not == nullptr) e.who->left_behind(e.holders, e.waiters);
        e.who->answered(e.why_not == nullptr ? std::nullopt : std::optional(*e.why_not));
    }
    void operator()(const effects::validity& e) const {
        if (auto* const told = listener_of(*e.of)) told->on_validity(e.of->valid_until());
    }
    void operator()(const effects::token& e) const {
        if (auto* const told = listener_of(*e.of)) told->on_token(e.of->token());
    }
    void operator()(const effects::lost& e) const {
        auto* const told = listener_of(*e.what);
        if (told == nullptr || told->is_in_use()) {
            observing.on_lost(e.what->terms().keys->lock(), e.why);
            observing.on_step(*e.what, life_step::lost, {});
        }
        if (told != nullptr) told->on_lost(e.why);
    }
    void operator()(const effects::wanted& e) const {
        if (auto* const told = listener_of(*e.what)) told->on_wanted();
    }
    void operator()(const effects::ceiling& e) const {
        if (auto* const told = listener_of(*e.of)) told->on_ceiling(e.of->ceiling());
    }
    void operator()(const effects::proved& e) const {
        if (auto* const told = listener_of(*e.what)) told->on_proof(e.what->proved_at());
    }
    void operator()(const effects::released& e) const {
        if (const auto told = e.what->take_listener()) told->on_gone();
        observing.on_released(e.held);
        observing.on_step(*e.what, life_step::released, e.held);
    }
    void operator()(const effects::ask_watched& e) const { e.to->submit(*e.which); }
    void operator()(const effects::sighted& e) const {
        if (const auto told = e.which->listener()) told->on_sight(*e.seen);
    }
    void operator()(const effects::watch_troubled& e) const {
        if (const auto told = e.which->listener()) told->on_trouble(*e.why);
    }
    void operator()(const effects::seen_asked& e) const { observing.on_step(*e.of, life_step::asked, {}); }
    void operator()(const effects::seen_refused& e) const {
        observing.on_refused();
        observing.on_step(*e.of, life_step::refused, e.waited);
    }
    void operator()(const effects::seen_renewed& e) const {
        observing.on_renewed();
        observing.on_step(*e.of, life_step::renewed, {});
    }
    void operator()(const effects::seen_renewal_failed& e) const { observing.on_renewal_failed(*e.why); }
    void operator()(const effects::seen_support& e) const {
        observing.on_support(e.of->terms().keys->lock(), e.what, e.count);
    }
};

// A copy, because what it leads to may append.
template <typename T>
T take(std::deque<T>& all) {
    const T next = all.front();
    all.pop_front();
    return next;
}

}  // namespace

void engine::run(instant now) {
    if (running_ || together_) return;  // an effect has led back here: the loop goes on with what was appended
    running_ = true;
    // Also if an effect throws (no memory for a handler): the next call goes on with the rest.
    const std::unique_ptr<bool, void (*)(bool*)> guard(&running_, [](bool* running) { *running = false; });
    while (!events_.empty() || !effects_.empty()) {
        events_.empty() ? std::visit(executor{observer_, now}, take(effects_)) : take_event(take(events_), now);
    }
    if (holds_.has_forgotten()) holds_.free_forgotten();
    if (!kept_.empty()) kept_.clear();
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
            return acquisitions_.on_granted(n, event.granted_how, now);
        case node_event::kind::raised:
            return acquisitions_.on_raised(n, now);
        case node_event::kind::queued:
            acquisitions_.on_queued(n, now);
            return false;
        case node_event::kind::refused:
            on_refused(event, h, now);
            break;
        case node_event::kind::extended:
            if (is_held) held_.update_validity(h);
            break;
        case node_event::kind::lost:
            if (is_held) held_.on_node_hold_lost(n, {errc::lost, "", {}, {}}, event.why, now);
            if (h.phase == hold_phase::wanted) acquisitions_.on_lost(n, now);
            break;
        case node_event::kind::renewed:
            if (is_held) held_.on_renewed(n, event, now);
            break;
        case node_event::kind::wanted:
            held_.on_wanted(n);
            return false;
        case node_event::kind::link_new:
            if (is_held) held_.update_validity(h);
            return false;
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
    // Not of the upgrade that may be pending: a node was asked to back the hold, or could not renew its node hold.
    const refusal& why = *event.why_not;
    const bool is_of_hold = h.phase == hold_phase::held && !event.at->counts();
    is_of_hold ? held_.on_node_hold_lost(*event.at, why, why.code, now) : acquisitions_.on_refused(*event.at, why, now);
}

// Nothing may be left of it.
void engine::settle(hold& h) {
    acquisitions_.answered(h);
    holds_.forget_if_gone(h);
}

// --- owners

hold* engine::find(owner_id owner, const lock_keys& keys) {
    if (owner == owner_id::nobody) return nullptr;
    const auto found = owned_.find({owner, keys.lock()});
    return found == owned_.end() ? nullptr : found->second;
}

void engine::own(hold& h) {
    if (h.terms().owner == owner_id::nobody) return;
    owned_.emplace(owned_lock{h.terms().owner, h.terms().keys->lock()}, &h);
}

void engine::disown(const hold& h) {
    if (h.terms().owner == owner_id::nobody) return;
    const auto owned = owned_.find({h.terms().owner, h.terms().keys->lock()});
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
    add(effects::refused{&request, keep(refusal{code, std::move(detail), {}, {}})});
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

void engine::extend(acquire_completion& request, instant deadline, instant now) {
    hold* const h = request.pending_hold;
    if (h != nullptr) acquisitions_.extend(*h, deadline, now);
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

void engine::begin_together() {
    together_ = true;
    if (!nodes_.several()) nodes_[0].begin_together();
}

void engine::end_together(instant now) {
    if (!nodes_.several()) nodes_[0].end_together();
    together_ = false;
    run(now);
}

void engine::renew(hold& h, hold_completion& request, instant now) {
    held_.renew(h, request, now);
    run(now);
}

void engine::want_numbers(hold& h, instant now) {
    held_.lose_if_ran_out(h, now);
    if (h.phase == hold_phase::held && h.kept) held_.renew_nodes(h, now);
    run(now);
}

void engine::keep_listening(const lock_keys& keys, instant now) {
    for (const auto& each : nodes_) each->keep_listening(keys);
    run(now);
}

lock_watch& engine::watch(std::shared_ptr<const lock_keys> keys, std::shared_ptr<watch_listener> listener,
                          instant now) {
    HOLDFAST_ASSERT(!nodes_.several());
    lock_watch& made = nodes_[0].watch(std::move(keys), std::move(listener), telling::changes, now);
    run(now);
    return made;
}

std::vector<lock_watch*> engine::watch_all(std::shared_ptr<const lock_keys> keys,
                                           std::shared_ptr<watch_listener> listener, instant now) {
    if (!nodes_.several()) return {&watch(std::move(keys), std::move(listener), now)};
    const auto whole = std::make_shared<majority_watch>(nodes_.size(), std::move(listener));
    std::vector<lock_watch*> made;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
        made.push_back(&nodes_[i].watch(keys, majority_watch::listener_at(whole, i), telling::answers, now));
    run(now);
    return made;
}

void engine::unwatch(lock_watch& watched, instant now) {
    watched.stop(now);
    run(now);
}

void engine::abandon(owner_id owner, instant now) {
    std::vector<hold*> left;
    for (const auto& [key, held] : owned_) {
        if (key.first == owner) left.push_back(held);
    }
    for (hold* const held : left) {
        disown(*held);
        held_.abandon(*held, now);
        settle(*held);
    }
    run(now);
}

void engine::abandon(hold& h, instant now) {
    disown(h);
    held_.abandon(h, now);
    settle(h);
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

void node_input::on_link_up(const node_facts& facts, const lock_set& which, instant now) {
    if (facts.clock) whole_.clock_.set(number_, *facts.clock, now);
    agent().on_link_up(which, now);
    whole_.mark_links_changed(which);
    whole_.run(now);
}

void node_input::on_link_down(const lock_set& which, instant now) {
    agent().on_link_down(which);
    whole_.mark_links_changed(which);
    whole_.run(now);
}

void node_input::on_owners_changed(instant now) {
    whole_.tell({.what = node_event::kind::owners_changed});
    whole_.run(now);
}

void node_input::on_subscription_refused(const failure& why, const lock_set& which, instant now) {
    agent().on_subscription_refused(why, which, now);
    whole_.run(now);
}

void node_input::on_wakes_changed(const lock_set& which, instant now) {
    agent().on_wakes_changed(which, now);
    whole_.run(now);
}

void node_input::on_push(const redis::reply_view& message, instant now) {
    agent().on_push(message, now);
    whole_.run(now);
}

node_agent& node_input::agent() const noexcept {
    return whole_.nodes_[number_];
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

}  // namespace holdfast::engine
