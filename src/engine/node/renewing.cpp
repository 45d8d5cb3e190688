#include "engine/node/parts.hpp"

namespace holdfast::engine::renewing {
namespace {

// Other programs that share a read-write lock set one expiry for all holders. If that ends before our next renewal
// restores it, the hold is lost: so renewals come at a third of the shortest such expiry that was seen. Before one is
// seen, go-redislock's is assumed, whose hash it is.
constexpr milliseconds usual_foreign_ttl{5000};
// What was seen is the rest of an expiry, which may be close to zero: renewals come no more often than this.
constexpr milliseconds shortest_foreign_pace{100};

// A renewal that failed for a reason that may pass is tried again after this part of the lease.
constexpr int retry_part = 10;

// Tokens requested by one renewal of a marked hold whose ceiling is ahead of the node's clock.
constexpr fencing_token numbers_ahead = 10'000;

// Rounds down to a common beat, so that the renewals of many holds go out in one write.
instant on_the_beat(instant exactly, std::chrono::nanoseconds pace) {
    const auto beat = std::max(pace / 1000, std::chrono::nanoseconds(1));
    return exactly - exactly.time_since_epoch() % beat;
}

// How long after the last proof the next renewal is due.
std::chrono::nanoseconds pace(node_agent& agent, const node_hold& n) {
    const hold_terms& terms = agent.terms_of(n);
    milliseconds ttl = n.foreign_ttl;
    if (agent.kind_of(n).has_shared_mode() && terms.keys->is_raw()) ttl = std::min(ttl, usual_foreign_ttl);
    const milliseconds third = terms.options.lease / 3;
    return ttl < terms.options.lease ? std::min(third, std::max(ttl / 3, shortest_foreign_pace)) : third;
}

void send(node_agent& agent, node_hold& n, instant now, purpose how_asked = purpose::renew) {
    const hold_terms& terms = agent.terms_of(n);
    call& request = agent.start(how_asked, n, &node_requests::renewing);
    const bool is_alone = how_asked == purpose::renew_alone;
    if (is_alone && agent.kind_of(n).can_renew_alone()) {
        wire::write(request, agent.lock_of(n, now),
                    wire::renew_alone_request{.id = agent.id_of(n), .lease = terms.options.lease});
    } else if (n.is_marked() && !is_alone) {
        wire::write(request, agent.lock_of(n, now),
                    wire::renew_block_request{.id = agent.id_of(n),
                                              .lease = terms.options.lease_at_server(),
                                              .delay = milliseconds(terms.options.delay_ms),
                                              .ceiling = n.whole->ceiling() + numbers_ahead});
    } else {
        wire::write(request, agent.lock_of(n, now),
                    wire::renew_request{.id = agent.id_of(n),
                                        .lease = terms.options.lease_at_server(),
                                        .delay = milliseconds(terms.options.delay_ms),
                                        .keeps_note = !is_alone});
    }
    if (how_asked == purpose::renew) request.tell_if_moving();
    if (how_asked != purpose::renew_again) request.pass_others();
    // What was unclear may be plain by then.
    const bool waits = how_asked == purpose::renew_again;
    agent.send(request, waits ? std::min(n.valid_until, now + terms.options.lease / retry_part) : n.valid_until);
}

// Holds that were acquired within a moment come due within a moment. If that is more than the node can do, some wait:
// at most an eighth of the lease. Otherwise thousands of requests pile up here.
void send_when_due(node_agent& agent, node_hold& n, instant now) {
    const milliseconds lease = agent.options_of(n).lease;
    const instant proved_at = n.valid_until - lease + agent.drift(lease);
    const std::chrono::nanoseconds every = pace(agent, n);
    const instant latest = on_the_beat(proved_at + every + every * 3 / 8, every);
    if (agent.renewals_in_flight() < agent.settings().most_renewals || now >= latest) return send(agent, n, now);
    const auto room = static_cast<std::uint64_t>(std::chrono::nanoseconds(latest - now).count());
    const std::chrono::nanoseconds least = every * 3 / 128;
    const std::chrono::nanoseconds chance(static_cast<std::int64_t>(agent.random().next() % room));
    n.renew_at = std::min(latest, on_the_beat(now + least + chance, every));
}

void done(node_agent& agent, node_hold& n, const proof& shown, instant now) {
    keeping::proved(agent, n, shown);
    n.renewed_blindly = false;
    agent.set_timer(n, now);
    agent.tell(node_event::kind::renewed, n);
}

}  // namespace

void note_foreign_ttl(node_hold& n, std::optional<milliseconds> cut_to) {
    if (cut_to) n.foreign_ttl = std::min(n.foreign_ttl, *cut_to);
}

void extend_validity(node_agent& agent, node_hold& n, instant proved_at) {
    const hold_terms& terms = agent.terms_of(n);
    n.valid_until = std::max(n.valid_until, proved_at + terms.options.lease - agent.drift(terms.options.lease));
    if (terms.options.renewing == renewal::automatic && n.is_renewed) {
        // Up to a tenth earlier, so that holds acquired together do not renew together.
        const std::chrono::nanoseconds every = pace(agent, n);
        const auto jitter = static_cast<std::uint64_t>(every.count()) / 10;
        const instant exactly =
            proved_at + every -
            std::chrono::nanoseconds(static_cast<std::int64_t>(agent.random().next() % (jitter + 1)));
        n.renew_at = on_the_beat(exactly, every);
    }
}

void on_timer(node_agent& agent, node_hold& n, instant now) {
    if (now >= n.renew_at && n.pending().renewing == nullptr) send_when_due(agent, n, now);
}

void prove_anew(node_agent& agent, node_hold& n, instant now) {
    agent.drop(n, &node_requests::renewing);
    n.renew_at = now;
    send_when_due(agent, n, now);
    agent.set_timer(n, now);
}

void stop(node_agent& agent, node_hold& n, instant now) {
    agent.drop(n, &node_requests::renewing);
    n.is_renewed = false;
    n.renew_at = never;
    agent.set_timer(n, now);
}

void renew(node_agent& agent, node_hold& n, instant now) {
    if (n.pending().renewing == nullptr) send(agent, n, now);
    agent.set_timer(n, now);
}

std::optional<hold_answer> on_reply(node_agent& agent, node_hold& n, const call& asked, const redis::reply_view& reply,
                                    instant now) {
    const bool was_alone = asked.what() == purpose::renew_alone;
    if (reply.is_error()) {
        const failure why = agent.classify(n, reply);
        const bool has_less =
            agent.kind_of(n).can_renew_alone() || n.is_marked() || agent.options_of(n).note != nullptr;
        const bool goes_alone = why.code == errc::moving && has_less && !was_alone;
        goes_alone ? send(agent, n, now, purpose::renew_alone) : on_failure(agent, n, why, now);
        return std::nullopt;
    }
    const bool has_own_form = was_alone && agent.kind_of(n).can_renew_alone();
    auto answer = has_own_form ? wire::read_renew_alone(reply) : wire::read_hold(reply);
    if (!answer) {
        const refusal nonsense = agent.nonsense();
        on_failure(agent, n, {nonsense.code, nonsense.detail}, now);
        return std::nullopt;
    }
    const bool is_loss =
        answer->what == hold_answer::verdict::not_held || answer->what == hold_answer::verdict::held_by_other;
    // A slot that moves back and forth: the member to which it moves again may not have the key yet.
    const bool may_be_elsewhere = is_loss && asked.was_redirected() && asked.what() != purpose::renew_again;
    if (may_be_elsewhere || answer->what == hold_answer::verdict::unclear) {
        send(agent, n, now, purpose::renew_again);
    } else if (is_loss) {
        agent.lose(n, answer->what == hold_answer::verdict::not_held ? errc::not_held : errc::held_by_other);
    } else if (answer->what == hold_answer::verdict::done) {
        if (n.ran_out(now)) {
            agent.lose(n, errc::lost);
            return std::nullopt;
        }
        note_foreign_ttl(n, answer->cut_to);
        keeping::note_ceiling(n, answer->ceiling);
        keeping::note_waiters(agent, n, answer->waiters);
        if (!confirming::is_wanted(n)) extend_validity(agent, n, asked.written_at());
        return answer;
    }
    return std::nullopt;
}

void found(node_agent& agent, node_hold& n, const call& asked, const hold_answer& answer, instant now) {
    const proof shown{.token = answer.token, .at = asked.written_at(), .ceiling = answer.ceiling};
    if (!confirming::is_wanted(n)) return done(agent, n, shown, now);
    confirming::ask(agent, n, &node_requests::renewing, purpose::confirm_renewal, shown);
    agent.set_timer(n, now);
}

void on_failure(node_agent& agent, node_hold& n, const failure& why, instant now) {
    agent.todo().add(effects::seen_renewal_failed{agent.todo().keep(why)});
    // Repeatable: if a broken link leaves the outcome unknown, the renewal is sent again on the next link.
    const bool unknown = why.code == errc::outcome_unknown;
    const milliseconds lease = agent.options_of(n).lease;
    const std::chrono::nanoseconds rest = std::min(std::chrono::nanoseconds(lease) / retry_part, pace(agent, n));
    // A lost link slows down what is sent on the next. Where the link is up, we have to slow down ourselves: a server
    // that never knows the outcome would be asked as fast as it answers.
    const bool at_once = unknown && !(agent.link_is_up(n) && std::exchange(n.renewed_blindly, true));
    n.renew_at = at_once ? now : now + (unknown ? std::min<std::chrono::nanoseconds>(again_after, rest) : rest);
    if (agent.options_of(n).renewing == renewal::none) n.renew_at = never;
    agent.set_timer(n, now);
    agent.tell_failed(node_event::kind::renewed, n, {why.code, why.detail, {}, {}});
}

void on_confirmation(node_agent& agent, node_hold& n, const call& asked, const confirmation& said, instant now) {
    if (said.why_not) {
        // After a broken link or with another server it is sent at once. Otherwise it was not the renewal that failed.
        const bool known_cause = said.why_not->code == errc::outcome_unknown || !said.is_unknown;
        return on_failure(agent, n, known_cause ? *said.why_not : failure{errc::not_replicated, said.why_not->detail},
                          now);
    }
    if (n.ran_out(now)) return agent.lose(n, errc::lost);
    extend_validity(agent, n, asked.shown().at);
    done(agent, n, asked.shown(), now);
}

}  // namespace holdfast::engine::renewing
