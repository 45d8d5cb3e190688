// Asking for a lock, or for an upgrade, and standing in line for it.

#include "engine/hold.hpp"
#include "engine/voter.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;
using scripts::acquire_answer;
using scripts::wish;

constexpr milliseconds longest_poll_interval{10'000};
// A foreign holder publishes nothing when it lets go: the first in line looks again and again.
constexpr milliseconds foreign_poll_shortest{50};
constexpr milliseconds foreign_poll_longest{250};
// After a holder's lease has ended the first in line looks first; the others leave it time to.
constexpr milliseconds after_deadline{2};
constexpr milliseconds stagger{25};
constexpr std::size_t most_staggered = 9;

milliseconds poll_interval(milliseconds lease) {
    return std::clamp(lease / 3, 1ms, longest_poll_interval);
}

errc code_for(acquire_answer::reason why) {
    switch (why) {
        case acquire_answer::reason::reading:
            return errc::read_held;
        case acquire_answer::reason::writing:
            return errc::write_held;
        case acquire_answer::reason::reserved:
            return errc::reserved;
        case acquire_answer::reason::deadlock:
            return errc::would_deadlock;
        case acquire_answer::reason::other_mode:
            return errc::held_other_mode;
        case acquire_answer::reason::held:
            break;
    }
    return errc::busy;
}

}  // namespace

void voter::acquire(acquire_request& request, acquire_terms terms, instant now) {
    if (hold* const mine = find(terms.owner, *terms.keys)) return reenter(*mine, request, terms, now);
    ballot& b = holds_.emplace_back();
    b.self_ = std::prev(holds_.end());
    b.id_ = hold_id(client_, ++next_counter_, random_);
    b.terms_ = std::move(terms);
    begin_quest(b, request, b.terms_.limit, now);
}

void voter::reenter(hold& mine, acquire_request& request, const acquire_terms& terms, instant now) {
    // After a sleep the caller may be here before the timer: what ran out meanwhile is not entered again.
    if (mine.state_ == state::held && ran_out(mine, now)) lose(mine, errc::lost);
    if (mine.state_ != state::held) {
        return request.refused({errc::lost, "the hold was lost; release it as often as it was taken first", {}, {}});
    }
    if (mine.terms_.kind != terms.kind) {
        return request.refused({errc::wrong_type, "the caller holds a lock of another kind by this name", {}, {}});
    }
    if (mine.exclusive_ + mine.shared_ >= settings_.max_depth) return request.refused({errc::too_deep, "", {}, {}});
    if (terms.want == access::exclusive && mine.exclusive_ == 0) return upgrade(mine, request, terms.limit, now);
    ++(terms.want == access::shared ? mine.shared_ : mine.exclusive_);
    watcher_.on_reentered();
    if (mine.terms_.renewing == renewal::none && mine.renewing_ == nullptr) send_renewal(mine, now);
    request.acquired(mine);
}

void voter::upgrade(ballot& b, acquire_request& request, patience limit, instant now) {
    if (b.state_ == state::held && ran_out(b, now)) lose(b, errc::lost);
    if (b.state_ != state::held) return request.refused({errc::lost, "", {}, {}});
    if (b.exclusive_ > 0) {
        ++b.exclusive_;
        watcher_.on_reentered();
        return request.acquired(b);
    }
    if (b.terms_.upgrading == upgrades::refused) {
        return request.refused({errc::would_deadlock, "a striped lock cannot be upgraded", {}, {}});
    }
    if (b.quest_.at != stage::none) {
        return request.refused({errc::too_many, "an upgrade of this hold is under way", {}, {}});
    }
    // An answer to a poll of the acquisition would be taken for one to the upgrade.
    if (b.asking_ != nullptr) b.orphaned_ask_ = true;
    drop_call(b.asking_);
    begin_quest(b, request, limit, now);
}

void voter::begin_quest(ballot& b, acquire_request& request, patience limit, instant now) {
    b.quest_ = {};
    b.quest_.at = stage::asking;
    b.quest_.limit = limit;
    b.quest_.asked_at = now;
    b.quest_.request = &request;
    request.subject_ = &h;
    if (limit.wait == waiting::in_line) {
        if (!std::exchange(subscribed_, true)) out_.subscribe(channel());
        in_line_.emplace(b.id_.text(), &b);
    }
    // What is being made less must be less before it is asked to be more.
    if (b.changing_ != nullptr || b.change_again_at_ != never) b.quest_.at = stage::deferred;
    set_timer(b, now);
    if (b.quest_.at == stage::asking) ask(b, now);
}

void voter::cancel(acquire_request& request, errc why, instant now) {
    hold* const h = request.subject_;
    if (h == nullptr || h->quest_.request != &request) return;
    refuse(*b, {why, "", {}, {}}, now);
}

void voter::ask(ballot& b, instant now) {
    const bool waits = b.quest_.limit.wait == waiting::in_line;
    if (now < trusted_from_) {
        if (!waits) return refuse(b, {errc::recovering, settings_.server, {}, {}}, now);
        b.quest_.poll_at = trusted_from_;
        return set_timer(b, now);
    }
    const bool upgrades = b.state_ == state::held;
    call& question = start_call(purpose::acquire, h);
    const std::string wake_up = waits ? channel() : std::string();
    const milliseconds interval = poll_interval(b.terms_.lease);
    scripts::write(question, lock_of(b),
                   scripts::acquire_question{.id = b.id_.text(),
                                             .wants = upgrades                          ? wish::upgrade
                                                      : b.terms_.want == access::shared ? wish::read
                                                                                        : wish::write,
                                             .lease = b.terms_.lease,
                                             .token_floor = floor_,
                                             .channel = wake_up,
                                             .ticket = b.quest_.ticket,
                                             .poll_interval = interval,
                                             .queue_retention = 6 * interval + 1s,
                                             .upgrading = upgrades ? b.token_ : 0});
    question.give_up_at(b.quest_.limit.deadline);
    b.asking_ = &question;
    out_.submit(question);
}

void voter::poll(ballot& b, instant now) {
    b.quest_.poll_at = never;
    set_timer(b, now);
    if (b.asking_ == nullptr && b.quest_.at != stage::deferred) ask(b, now);
}

void voter::answered_acquire(ballot& b, const call& asked, const redis::reply_view& reply, instant now) {
    if (b.state_ == state::leaving || b.state_ == state::lost) return;  // undone or released meanwhile
    const bool wanted = b.quest_.at != stage::none;
    if (reply.is_error()) {
        const failure why = classify(reply);
        if (wanted) refuse(b, {why.code, why.detail, {}, {}}, now);
        return;
    }
    const auto answer = scripts::read_acquire(reply);
    if (!answer || (answer->what == acquire_answer::verdict::gone && b.state_ != state::held)) {
        if (wanted) refuse(b, nonsense(), now);
        return;
    }
    if (answer->what == acquire_answer::verdict::held) return granted(b, answer->token, asked.written_at(), now);
    // A poll that overlapped with a pushed grant answers "you hold"; anything else means that grant is over.
    if (!wanted) return lose(b, errc::held_by_other);
    switch (answer->what) {
        case acquire_answer::verdict::queued:
            return stand_in_line(b, asked, *answer, now);
        case acquire_answer::verdict::refused:
            b.quest_.may_have_run = false;  // it ran, and left nothing behind
            b.quest_.at = stage::asking;
            return refuse(b, {code_for(answer->why), "", answer->holder_left, std::string(answer->holder)}, now);
        case acquire_answer::verdict::gone:
        case acquire_answer::verdict::held:
            return lose(b, errc::not_held);
    }
}

void voter::stand_in_line(ballot& b, const call& asked, const acquire_answer& answer, instant now) {
    hold::quest& q = b.quest_;
    q.at = stage::in_line;
    q.ticket = answer.ticket;
    q.fence_then = answer.fence;
    q.last_answered_poll = asked.written_at();
    q.polled_on_this_link = true;
    q.holder = answer.holder;
    q.holder_until = answer.holder_left ? std::optional(now + *answer.holder_left) : std::nullopt;
    milliseconds wait = poll_interval(b.terms_.lease);
    if (answer.place == 0 && !is_ours(answer.holder)) {
        const auto spread = static_cast<std::uint64_t>((foreign_poll_longest - foreign_poll_shortest).count());
        const milliseconds chance(static_cast<std::int64_t>(random_.next() % (spread + 1)));
        wait = std::min(wait, foreign_poll_shortest + chance);
    }
    if (answer.soonest) {
        const auto place = static_cast<int>(std::min(answer.place, most_staggered));
        wait = std::min(wait, *answer.soonest + after_deadline + stagger * place);
    }
    q.poll_at = now + wait;
    set_timer(b, now);
}

void voter::believe_push(ballot& b, fencing_token token, instant now) {
    if (b.state_ == state::leaving) return give_back(b, token, now);
    if (b.state_ == state::held && b.quest_.at == stage::none) {
        if (token <= b.token_) return;
        return notice(b,
                      {.what = scripts::hold_answer::verdict::done,
                       .holder_left = {},
                       .holder = {},
                       .held = shape::both,
                       .token = token},
                      now);
    }
    const hold::quest& q = b.quest_;
    if (q.at != stage::in_line || !q.polled_on_this_link || token <= q.fence_then) return;
    const instant end = q.last_answered_poll + b.terms_.lease - drift(b.terms_.lease);
    // Little is left by our cautious reckoning, though the lease is fresh: a poll makes it full and proves it.
    if (end - now < b.terms_.lease / 3) return poll(b, now);
    granted(b, token, q.last_answered_poll, now, observer::how::handed_over);
}

void voter::granted(ballot& b, fencing_token token, instant proved_at, instant now, observer::how got) {
    floor_ = std::max(floor_, token);
    if (b.state_ == state::held && b.quest_.at != stage::none) return upgraded(b, token, proved_at, now, got);
    if (b.state_ == state::held) {
        // The answer to a poll that was under way when the grant was pushed: a renewal, if it is the same grant.
        if (token != b.token_) return lose(b, errc::held_by_other);
        if (ran_out(b, now)) return lose(b, errc::lost);
        extend_validity(b, proved_at);
        return set_timer(b, now);
    }
    b.token_ = token;
    b.state_ = state::held;
    extend_validity(b, proved_at);
    if (b.valid_until_ - margin(b.terms_.lease) <= now) {
        // The answer took as long as the lease. One who waits asks again; one who does not gives it back.
        b.state_ = state::wanted;
        b.quest_.at = stage::in_line;
        if (b.quest_.limit.wait == waiting::in_line) return poll(b, now);
        return refuse(b, {errc::request_timed_out, settings_.server + ": the answer took as long as the lease", {}, {}},
                      now);
    }
    b.shape_ = b.terms_.want == access::shared ? shape::reading : shape::writing;
    (b.terms_.want == access::shared ? b.shared_ : b.exclusive_) = 1;
    if (b.terms_.owner != owner_id::nobody) owned_.emplace(owned_lock{b.terms_.owner, b.terms_.keys->lock}, &b);
    b.granted_at_ = now;
    watcher_.on_acquired(now - b.quest_.asked_at, got);
    acquire_request* const request = end_quest(b);
    set_timer(b, now);
    request->acquired(b);
}

void voter::upgraded(ballot& b, fencing_token token, instant proved_at, instant now, observer::how got) {
    if (ran_out(b, now)) return lose(b, errc::lost);
    adopt(b, token);
    b.shape_ = shape::both;
    b.exclusive_ = 1;
    extend_validity(b, proved_at);
    watcher_.on_acquired(now - b.quest_.asked_at, got);
    acquire_request* const request = end_quest(b);
    set_timer(b, now);
    request->acquired(b);
}

// Nothing is asked for any more; returns whom to tell.
acquire_request* voter::end_quest(ballot& b) {
    acquire_request* const request = b.quest_.request;
    if (request != nullptr) request->subject_ = nullptr;
    b.quest_ = {};
    if (!b.stray_copies_) in_line_.erase(b.id_.text());
    return request;
}

errc voter::too_late(const ballot& b) noexcept {
    return b.quest_.limit.wait == waiting::in_line ? errc::timed_out : errc::request_timed_out;
}

void voter::mark_stray(ballot& b) {
    b.stray_copies_ = true;
    in_line_.emplace(b.id_.text(), &b);  // a grant that such a copy gets is pushed to this id, and given back
}

void voter::failed_acquire(ballot& b, const failure& why, instant now) {
    const bool unknown = why.code == errc::outcome_unknown;
    if (unknown) b.stray_copies_ = true;
    if (b.quest_.at == stage::none) {
        if (unknown) mark_stray(b);
        return;
    }
    if (unknown) {
        b.quest_.may_have_run = true;
        const bool may_repeat = b.quest_.repeats++ < b.terms_.max_repeats;
        if (now < b.quest_.limit.deadline && may_repeat) return ask(b, now);  // goes out on the next link
        // Not "outcome unknown" to the caller: what may have been got is given back.
        return refuse(b, {too_late(b), why.detail, {}, {}}, now);
    }
    refuse(b, {why.code, why.detail, {}, {}}, now);
}

// Ends the quest. If anything of it may be on the server, it is undone there; what was held before stays held.
void voter::refuse(ballot& b, refusal why, instant now) {
    const hold::quest& q = b.quest_;
    const bool unanswered = b.asking_ != nullptr && b.asking_->life() == redis::command::state::written;
    const bool left_something = unanswered || q.may_have_run || b.stray_copies_ || q.at == stage::in_line;
    if (why.code == errc::timed_out && !q.holder.empty()) {
        why.holder = q.holder;
        if (q.holder_until) {
            why.holder_left = std::chrono::duration_cast<milliseconds>(std::max(*q.holder_until, now) - now);
        }
    }
    if (unanswered) b.orphaned_ask_ = true;
    drop_call(b.asking_);
    acquire_request* const request = end_quest(b);
    if (b.state_ == state::held) {
        if (left_something) cancel_upgrade(b, now);
        set_timer(b, now);
    } else if (left_something) {
        b.token_ = 0;  // any grant: nobody believes in this id any more
        leave(b, now);
    } else {
        forget(b);
    }
    watcher_.on_refused();
    request->refused(why);
}

void voter::check_waiting(ballot& b, instant now) {
    if (now >= b.quest_.limit.deadline) {
        return refuse(b, {out_.link_is_up() ? too_late(b) : errc::unreachable, settings_.server, {}, {}}, now);
    }
    if (now >= b.quest_.poll_at) poll(b, now);
}

}  // namespace holdfast::engine
