#include "engine/node/node_agent.hpp"

#include "engine/node/parts.hpp"
#include "redis/resp/error_reply.hpp"
#include "wire/push.hpp"
#include "wire/together.hpp"

namespace holdfast::engine {

const node_requests node_hold::none{};

node_hold* call::take_subject() noexcept {
    if (subject_ != nullptr && subject_->requests) {
        call*& pending = (*subject_->requests).*slot_;
        if (pending == this) pending = nullptr;
    }
    return subject_;
}

void call::end() {
    owner_.end(*this);
}

void call::on_reply(const redis::reply_view& reply, instant now) {
    owner_.on_outcome(*this, {.reply = &reply}, now);
}

void call::on_failure(const failure& why, instant now) {
    owner_.on_outcome(*this, {.why = &why}, now);
}

// Less than was proved, if the server that has it now took over from the one that proved it, and was behind.
void call::on_shown(milliseconds left, instant asked_at) {
    if (subject_ == nullptr) return;
    shown_.at = std::min(shown_.at, asked_at + left - subject_->whole->options().lease_at_server());
}

node_agent::node_agent(node_link link, const node_surroundings& where)
    : link_(std::move(link)),
      where_(where),
      out_(*link_.out),
      wakes_(link_.listens, where.client.text(), out_, where.todo) {}

// --- what the quorum asks for

void node_agent::make_less(node_hold& n, shape at_most, instant now) {
    changing::make_less(*this, n, at_most, now);
    acquiring::start_deferred(*this, n, now);
}

void node_agent::let_run_out(node_hold& n, instant now) {
    if (n.asks()) acquiring::give_up(*this, n, now);
    if (n.counts()) renewing::stop(*this, n, now);
}

void node_agent::keep_listening(const lock_keys& lock) {
    wakes_.enter(lock);
    wakes_.subscribe(lock);
}

lock_watch& node_agent::watch(std::shared_ptr<const lock_keys> keys, std::shared_ptr<watch_listener> listener,
                              telling what, instant now) {
    wakes_.enter(*keys);
    watches_.push_back(
        std::make_shared<lock_watch>(*this, std::move(keys), hold_id(0, random()), std::move(listener), what));
    lock_watch& made = *watches_.back();
    made.ask(now);
    return made;
}

void node_agent::forget_watch(lock_watch& which) {
    wakes_.leave(which.keys());
    const auto found = std::ranges::find(watches_, &which, &std::shared_ptr<lock_watch>::get);
    todo().keep(std::move(*found));
    watches_.erase(found);
}

milliseconds node_agent::recovers_in(const lock_keys& lock, instant now) const {
    const auto left = std::max(out_.trusted_from(lock) - now, std::chrono::nanoseconds(0));
    return std::chrono::ceil<milliseconds>(left);
}

// --- steps that several parts take

wire::lock_terms node_agent::lock_of(const node_hold& n, instant now) const {
    const hold_terms& terms = terms_of(n);
    return {.keys = *terms.keys,
            .kind = terms.options.kind,
            .prefer = terms.options.prefer,
            .fence_retention = where_.settings.fence_retention,
            .proposal = where_.clock.proposal(now),
            .limit = terms.options.limit};
}

node_requests& node_agent::busy(node_hold& n) {
    if (!n.requests) n.requests = spare_requests_.take();
    return *n.requests;
}

// A node hold that is simply held has nothing pending, and needs no memory for it.
void node_agent::rest_if_idle(node_hold& n) noexcept {
    if (!n.requests || !n.requests->idle()) return;
    n.requests->acquisition.end();
    spare_requests_.give_back(std::move(n.requests));
}

void node_agent::set_timer(node_hold& n, instant now) {
    rest_if_idle(n);
    instant due = n.asks() ? std::min(n.whole->deadline_at_node(), n.acquisition().poll_at) : never;
    if (n.counts()) {
        const instant last_moment = n.valid_until - margin(options_of(n).lease);
        const instant renewal_due = n.pending().renewing == nullptr ? std::max(n.renew_at, now) : never;
        due = std::min({due, last_moment, renewal_due, n.pending().change_again_at, n.pending().raise_again_at});
    }
    due == never ? timers_.cancel(n) : timers_.set(n, due);
}

call& node_agent::start(purpose what, node_hold& n, call* node_requests::*slot) {
    if (idle_calls_.empty()) {
        calls_.push_back(std::make_unique<call>(*this));
        idle_calls_.push_back(calls_.back().get());
    }
    call& fresh = *idle_calls_.back();
    idle_calls_.pop_back();
    fresh.begin(what, n, slot);
    if (fresh.renews()) ++renewals_;
    busy(n).*slot = &fresh;
    return fresh;
}

void node_agent::end(call& ended) {
    if (ended.renews()) --renewals_;
    idle_calls_.push_back(&ended);
}

void node_agent::send(call& request, instant give_up_at) {
    request.give_up_at(give_up_at);
    if (collects_ && goes_together(request)) return collected_.push_back(&request);
    todo().add(effects::send{&out_, &request});
}

// --- several locks together

// Plain mutexes on one server that answers. Whatever is special about a lock or a hold (a note, which has a key of its
// own) is left to its own scripts.
bool node_agent::goes_together(const call& request) const {
    const node_hold& n = *request.subject();
    const lock_options& options = options_of(n);
    const bool is_plain = options.kind == wire::lock_kind::mutex && options.replicas == 0 && !keys_of(n).is_raw() &&
                          options.note == nullptr && !n.is_marked() && listens() == channels::one && link_is_up(n);
    const bool is_try = request.what() == call::purpose::acquire && n.acquisition().wait == waiting::not_at_all &&
                        n.acquisition().gives_way == 0;
    const bool is_end = request.what() == call::purpose::release && n.token != 0;
    return is_plain && (is_try || is_end);
}

void node_agent::end_together() {
    collects_ = false;
    std::vector<call*> acquisitions;
    std::vector<call*> releases;
    for (call* const each : collected_) {
        (each->what() == call::purpose::acquire ? acquisitions : releases).push_back(each);
    }
    send_together(std::move(acquisitions));
    send_together(std::move(releases));
    collected_.clear();
}

void node_agent::send_together(std::vector<call*> parts) {
    if (parts.size() < 2 || parts.size() > wire::most_together) {
        for (call* const part : parts) todo().add(effects::send{&out_, part});
        return;
    }
    if (idle_bundles_.empty()) {
        bundles_.push_back(std::make_unique<bundle>(*this));
        idle_bundles_.push_back(bundles_.back().get());
    }
    bundle& whole = *idle_bundles_.back();
    idle_bundles_.pop_back();
    whole.begin(std::move(parts));
    todo().add(effects::send_together{&out_, &whole});
}

void node_agent::write_together(bundle& out, const std::vector<call*>& parts) {
    boost::container::small_vector<hold_id::spelled, wire::most_together> ids;
    for (const call* const part : parts) ids.push_back(id_of(*part->subject()));
    if (parts.front()->what() == call::purpose::acquire) {
        boost::container::small_vector<wire::acquire_part, wire::most_together> all;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const node_hold& n = *parts[i]->subject();
            all.push_back({keys_of(n), ids[i], options_of(n).lease_at_server(), clock().floor()});
        }
        return wire::write_acquire_all(out, settings().fence_retention, all);
    }
    boost::container::small_vector<wire::release_part, wire::most_together> all;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const node_hold& n = *parts[i]->subject();
        all.push_back({keys_of(n), ids[i], n.token});
    }
    wire::write_release_all(out, all);
    out.send_text_at_first();
}

void node_agent::send_alone(call& part, instant now) {
    redis::routing::set_idle(part);
    if (part.is_orphan()) return part.end();
    todo().add(effects::send{&out_, &part});
    todo().run(now);
}

void node_agent::drop(node_hold& n, call* node_requests::*which) {
    if (!n.requests) return;
    call* const dropped = std::exchange((*n.requests).*which, nullptr);
    if (dropped == nullptr) return;
    dropped->orphan();
    if (dropped->life() == redis::command::state::waiting) todo().add(effects::withdraw{&out_, dropped});
}

bool node_agent::drop_ask(node_hold& n) {
    const call* const asking = n.pending().asking;
    const bool written = asking != nullptr && asking->may_run();
    if (written) n.orphaned_ask = true;
    drop(n, &node_requests::asking);
    return written;
}

void node_agent::drop_all(node_hold& n) {
    drop(n, &node_requests::renewing);
    drop_ask(n);
    drop(n, &node_requests::changing);
    drop(n, &node_requests::raising);
    if (n.requests) n.requests->change_again_at = n.requests->raise_again_at = never;
}

void node_agent::end_acquisition(node_hold& n) {
    if (n.requests && n.asks()) n.requests->acquisition.end();
    if (!n.stray_copies && !n.is_marked()) stop_listening(n);
}

void node_agent::enter_channel(node_hold& n) {
    if (!std::exchange(n.listens, true)) wakes_.enter(keys_of(n));
}

void node_agent::listen(node_hold& n) {
    enter_channel(n);
    wakes_.subscribe(keys_of(n));
}

void node_agent::expect_push(node_hold& n) {
    enter_channel(n);
    if (!std::exchange(n.expects_push, true)) waiters_.emplace(n.whole->id().counter(), &n);
}

void node_agent::stop_listening(node_hold& n) {
    if (std::exchange(n.expects_push, false)) waiters_.erase(n.whole->id().counter());
    if (std::exchange(n.listens, false)) wakes_.leave(keys_of(n));
}

node_hold* node_agent::find_waiter(std::string_view id) const {
    const auto number = wire::counter_of(id);
    const auto found = number ? waiters_.find(*number) : waiters_.end();
    return found != waiters_.end() && std::string_view(id_of(*found->second)) == id ? found->second : nullptr;
}

void node_agent::lose(node_hold& n, errc why) {
    n.phase = node_phase::lost;
    timers_.cancel(n);
    drop_all(n);
    n.cancelling = false;
    end_acquisition(n);
    rest_if_idle(n);
    tell({.what = node_event::kind::lost, .why = why, .at = &n});
}

void node_agent::forget(node_hold& n) {
    for (const auto each : {&node_requests::asking, &node_requests::renewing, &node_requests::changing,
                            &node_requests::leaving, &node_requests::raising}) {
        drop(n, each);
    }
    if (n.requests) {
        n.requests->acquisition.end();
        n.requests->raise_again_at = n.requests->release_again_at = n.requests->change_again_at = never;
    }
    rest_if_idle(n);
    timers_.cancel(n);
    stop_listening(n);
    n.phase = node_phase::gone;
    holds_.erase(holds_.iterator_to(n));
}

failure node_agent::classify(node_hold& n, const redis::reply_view& error_reply) {
    failure why = redis::classify_error(error_reply.text(), link_.server);
    if (!spoils_link(why.code)) return why;
    todo().add(effects::distrust{&out_, todo().keep(why)});
    // When the link ends this node hold may be forgotten, and could not be marked then.
    if (n.orphaned_ask) mark_stray(n);
    return why;
}

refusal node_agent::nonsense() const {
    return {errc::protocol_error, link_.server + ": a lock script was answered with something else", {}, {}};
}

// --- answers

void node_agent::on_outcome(call& asked, const call_outcome& outcome, instant now) {
    if (node_hold* const n = asked.take_subject()) dispatch(*n, asked, outcome, now);
    end(asked);
    todo().run(now);
}

void node_agent::dispatch(node_hold& n, const call& asked, const call_outcome& outcome, instant now) {
    const redis::reply_view* const reply = outcome.reply;
    switch (asked.what()) {
        case purpose::acquire:
            if (reply != nullptr) return acquiring::on_reply(*this, n, asked, *reply, now);
            return acquiring::on_failure(*this, n, *outcome.why, now);
        case purpose::release:
        case purpose::release_alone:
            if (reply != nullptr) return releasing::on_reply(*this, n, asked, *reply, now);
            return releasing::on_failure(*this, n, asked, *outcome.why, now);
        case purpose::confirm_grant:
        case purpose::confirm_renewal:
        case purpose::confirm_raise:
            return confirmed(n, asked,
                             reply ? confirming::conclude(*this, n, *reply) : confirming::conclude(*outcome.why), now);
        default:
            if (n.counts()) dispatch_held(n, asked, outcome, now);
    }
    if (!asked.renews()) acquiring::start_deferred(*this, n, now);
}

void node_agent::dispatch_held(node_hold& n, const call& asked, const call_outcome& outcome, instant now) {
    const redis::reply_view* const reply = outcome.reply;
    if (asked.renews()) {
        reply ? on_renewal(n, asked, *reply, now) : renewing::on_failure(*this, n, *outcome.why, now);
    } else if (asked.what() == purpose::raise) {
        reply ? raising::on_reply(*this, n, *reply, now) : raising::on_failure(*this, n, *outcome.why, now);
    } else {
        reply ? changing::on_reply(*this, n, asked, *reply, now) : changing::on_failure(*this, n, *outcome.why, now);
    }
}

void node_agent::confirmed(node_hold& n, const call& asked, const confirmation& said, instant now) {
    if (asked.what() == purpose::confirm_grant) return acquiring::on_confirmation(*this, n, asked, said, now);
    if (!n.counts()) return;
    if (asked.what() == purpose::confirm_renewal) return renewing::on_confirmation(*this, n, asked, said, now);
    raising::on_confirmation(*this, n, said, now);
    acquiring::start_deferred(*this, n, now);
}

void node_agent::on_renewal(node_hold& n, const call& asked, const redis::reply_view& reply, instant now) {
    const auto answer = renewing::on_reply(*this, n, asked, reply, now);
    if (!answer) return;
    changing::notice(*this, n, *answer, now);
    if (n.counts()) renewing::found(*this, n, asked, *answer, now);
    acquiring::on_renewed(*this, n, *answer, asked.written_at(), now);
}

// --- other events

void node_agent::on_link_up(const lock_set& which, instant now) {
    was_reached_ = true;
    for (auto next = holds_.begin(); next != holds_.end();) {
        node_hold& n = *next++;  // first: a refusal takes it out of the list
        if (!which.has(keys_of(n))) continue;
        keeping::on_link_up(*this, n, now);
        if (keeping::lacks_proof(n)) renewing::prove_anew(*this, n, now);
        acquiring::on_link_up(*this, n, now);
    }
    for (const auto& each : watches_) {
        if (which.has(each->keys())) each->ask(now);
    }
}

void node_agent::on_link_down(const lock_set& which) {
    for (node_hold& n : holds_) {
        if ((!n.requests && !n.orphaned_ask) || !which.has(keys_of(n))) continue;
        if (n.requests) n.requests->acquisition.polled_on_this_link = false;
        if (n.orphaned_ask) mark_stray(n);
    }
    for (const auto& each : watches_) {
        if (which.has(each->keys())) each->on_link_down();
    }
}

void node_agent::on_subscription_refused(const failure& why, const lock_set& which, instant now) {
    wakes_.refused(which);
    for (auto next = holds_.begin(); next != holds_.end();) {
        node_hold& n = *next++;  // first: a refusal takes it out of the list
        if (which.has(keys_of(n))) acquiring::on_subscription_refused(*this, n, why, now);
    }
    for (const auto& each : watches_) {
        if (which.has(each->keys())) each->on_subscription_refused(why, now);
    }
}

// What was pushed meanwhile may be lost, as after a new link.
void node_agent::on_wakes_changed(const lock_set& which, instant now) {
    for (auto next = holds_.begin(); next != holds_.end();) {
        node_hold& n = *next++;
        if (!which.has(keys_of(n))) continue;
        keeping::on_link_up(*this, n, now);
        if (keeping::lacks_proof(n)) renewing::prove_anew(*this, n, now);
        acquiring::on_hint(*this, n, now);
    }
    for (const auto& each : watches_) {
        if (which.has(each->keys())) each->ask(now);
    }
}

// ["message" or "smessage", channel, text]
void node_agent::on_push(const redis::reply_view& message, instant now) {
    if (message.size() < 3 || message[0].text() != wakes_.push_kind()) return;
    const std::string_view channel = message[1].text();
    wire::push_reader push(message[2].text());
    while (const auto item = push.next()) {
        if (push.kind() == wire::push_kind::changed) {
            for (const auto& each : watches_) {
                if (each->has_id(item->id)) each->ask(now);
            }
            continue;
        }
        const pushed_grant which{channel, item->id, item->token};
        if (push.kind() == wire::push_kind::revoked) return revoked(which, now);
        if (push.kind() == wire::push_kind::recall) return recalled(which);
        node_hold* const found = find_waiter(item->id);
        if (found == nullptr || wakes_.of(keys_of(*found)) != channel) continue;
        to_waiter(*found, *push.kind(), *item, now);
    }
}

void node_agent::to_waiter(node_hold& n, wire::push_kind kind, const wire::push_reader::item& item, instant now) {
    if (kind == wire::push_kind::wanted) return keeping::note_waiters(*this, n, 1);
    if (kind == wire::push_kind::poll) return acquiring::on_hint(*this, n, now);
    if (kind == wire::push_kind::grant_block) keeping::note_waiters(*this, n, item.waiters);
    acquiring::on_push(*this, n, item, now);
}

// An operator has ended this grant. One whose replicas are being asked for is not believed in yet: ask where it stands.
void node_agent::revoked(const pushed_grant& which, instant now) {
    for (node_hold& n : holds_) {
        const bool believed = keeping::is_grant(n, which.token);
        if (!believed && !acquiring::is_confirming(n, which.token)) continue;
        if (!is_meant(n, which)) continue;
        if (believed) return lose(n, errc::not_held);
        return acquiring::on_revoked(*this, n, now);
    }
}

// An operator wants this grant back, and waits for its holder to stop and release it.
void node_agent::recalled(const pushed_grant& which) {
    for (node_hold& n : holds_) {
        if (keeping::is_grant(n, which.token) && is_meant(n, which)) return tell(node_event::kind::recalled, n);
    }
}

bool node_agent::is_meant(const node_hold& n, const pushed_grant& which) {
    return std::string_view(id_of(n)) == which.id && wakes_.of(keys_of(n)) == which.channel;
}

void node_agent::on_timer(instant now) {
    while (timed* const due = watch_timers_.take_due(now)) static_cast<lock_watch&>(*due).ask(now);
    while (timed* const due = timers_.take_due(now)) {
        node_hold& n = static_cast<node_hold&>(*due);
        const node_phase phase = n.phase;  // as it was: the steps change it
        if (phase == node_phase::wanted) acquiring::on_timer(*this, n, now);
        if (phase == node_phase::held) check_holding(n, now);
        if (phase == node_phase::leaving) releasing::on_timer(*this, n, now);
    }
}

void node_agent::check_holding(node_hold& n, instant now) {
    if (now >= n.valid_until - margin(options_of(n).lease)) return lose(n, errc::lost);
    renewing::on_timer(*this, n, now);
    changing::on_timer(*this, n, now);
    raising::on_timer(*this, n, now);
    set_timer(n, now);
    acquiring::on_timer(*this, n, now);
}

}  // namespace holdfast::engine
