// Asking for a lock, or for an upgrade, and standing in line for it.

#include "engine/engine.hpp"

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

void engine::acquire(acquire_request& request, acquire_terms terms, instant now) {
    if (reads_a_stripe(terms)) {
        return request.refused(
            {errc::would_deadlock, "the caller reads it, and a striped lock cannot be upgraded", {}, {}});
    }
    if (hold* const mine = find(terms.owner, *terms.keys)) return reenter(*mine, request, terms, now);
    hold& h = holds_.emplace_back();
    h.self_ = std::prev(holds_.end());
    h.id_ = hold_id(client_, ++next_counter_, random_);
    h.terms_ = std::move(terms);
    begin_quest(h, request, h.terms_.limit, now);
}

bool engine::reads_a_stripe(const acquire_terms& terms) {
    if (!terms.stripes || terms.want != access::exclusive || terms.owner == owner_id::nobody) return false;
    return std::any_of(terms.stripes->begin(), terms.stripes->end(), [&](const lock_keys& stripe) {
        const hold* const mine = find(terms.owner, stripe);
        return mine != nullptr && mine->exclusive_ == 0;
    });
}

void engine::reenter(hold& mine, acquire_request& request, const acquire_terms& terms, instant now) {
    // After a sleep the caller may be here before the timer: what ran out meanwhile is not entered again.
    if (mine.state_ == state::held && ran_out(mine, now)) lose(mine, errc::lost);
    if (mine.state_ != state::held) {
        return request.refused({errc::lost, "the hold was lost; release it as often as it was taken first", {}, {}});
    }
    if (mine.terms_.kind != terms.kind) {
        return request.refused({errc::wrong_type, "the caller holds a lock of another kind by this name", {}, {}});
    }
    if (terms.want == access::exclusive) return upgrade(mine, request, terms.limit, now);
    if (is_too_deep(mine)) return request.refused({errc::too_deep, "", {}, {}});
    ++mine.shared_;
    reentered(mine, request, now);
}

bool engine::is_too_deep(const hold& h) const noexcept {
    return h.exclusive_ + h.shared_ >= settings_.max_depth;
}

void engine::reentered(hold& h, acquire_request& request, instant now) {
    watcher_.on_reentered();
    if (h.terms_.renewing == renewal::none && h.renewing_ == nullptr) send_renewal(h, now);
    request.acquired(h);
}

void engine::upgrade(hold& h, acquire_request& request, patience limit, instant now) {
    if (h.state_ == state::held && ran_out(h, now)) lose(h, errc::lost);
    if (h.state_ != state::held) return request.refused({errc::lost, "", {}, {}});
    if (is_too_deep(h)) return request.refused({errc::too_deep, "", {}, {}});
    if (h.exclusive_ > 0) {
        ++h.exclusive_;
        return reentered(h, request, now);
    }
    if (h.terms_.upgrading == upgrades::refused) {
        return request.refused({errc::would_deadlock, "a striped lock cannot be upgraded", {}, {}});
    }
    if (h.quest_.at != stage::none) {
        return request.refused({errc::too_many, "an upgrade of this hold is under way", {}, {}});
    }
    // An answer to a poll of the acquisition would be taken for one to the upgrade.
    drop_ask(h);
    begin_quest(h, request, limit, now);
}

void engine::begin_quest(hold& h, acquire_request& request, patience limit, instant now) {
    h.quest_ = {};
    h.quest_.at = stage::asking;
    h.quest_.limit = limit;
    h.quest_.asked_at = now;
    h.quest_.request = &request;
    request.subject_ = &h;
    if (limit.wait == waiting::in_line) {
        if (!std::exchange(subscribed_, true)) out_.subscribe(channel());
        in_line_.emplace(h.id_.text(), &h);
    }
    // What is being made less must be less before it is asked to be more.
    if (h.changing_ != nullptr || h.change_again_at_ != never) h.quest_.at = stage::deferred;
    set_timer(h, now);
    if (h.quest_.at == stage::asking) ask(h, now);
}

void engine::cancel(acquire_request& request, errc why, instant now) {
    hold* const h = request.subject_;
    if (h == nullptr || h->quest_.request != &request) return;
    refuse(*h, {why, "", {}, {}}, now);
}

void engine::ask(hold& h, instant now) {
    const bool waits = h.quest_.limit.wait == waiting::in_line;
    if (now < trusted_from_) {
        if (!waits) return refuse(h, {errc::recovering, settings_.server, {}, {}}, now);
        h.quest_.poll_at = trusted_from_;
        return set_timer(h, now);
    }
    const bool upgrades = h.state_ == state::held;
    call& question = start_call(purpose::acquire, h);
    const std::string wake_up = waits ? channel() : std::string();
    const milliseconds interval = poll_interval(h.terms_.lease);
    scripts::write(question, lock_of(h),
                   scripts::acquire_question{.id = h.id_.text(),
                                             .wants = upgrades                          ? wish::upgrade
                                                      : h.terms_.want == access::shared ? wish::read
                                                                                        : wish::write,
                                             .lease = h.terms_.lease,
                                             .token_floor = floor_,
                                             .channel = wake_up,
                                             .ticket = h.quest_.ticket,
                                             .poll_interval = interval,
                                             .queue_retention = 6 * interval + 1s,
                                             .upgrading = upgrades ? h.token_ : 0});
    question.give_up_at(h.quest_.limit.deadline);
    h.asking_ = &question;
    out_.submit(question);
}

void engine::poll(hold& h, instant now) {
    h.quest_.poll_at = never;
    set_timer(h, now);
    if (h.asking_ == nullptr && h.quest_.at != stage::deferred) ask(h, now);
}

void engine::answered_acquire(hold& h, const call& asked, const redis::reply_view& reply, instant now) {
    if (h.state_ == state::leaving || h.state_ == state::lost) return;  // undone or released meanwhile
    const bool wanted = h.quest_.at != stage::none;
    if (reply.is_error()) {
        const failure why = classify(reply);
        if (wanted) refuse(h, {why.code, why.detail, {}, {}}, now);
        return;
    }
    const auto answer = scripts::read_acquire(reply);
    if (!answer || (answer->what == acquire_answer::verdict::gone && h.state_ != state::held)) {
        if (wanted) refuse(h, nonsense(), now);
        return;
    }
    if (answer->what == acquire_answer::verdict::held) return granted(h, answer->token, asked.written_at(), now);
    // A poll that overlapped with a pushed grant answers "you hold"; anything else means that grant is over.
    if (!wanted) return lose(h, errc::held_by_other);
    switch (answer->what) {
        case acquire_answer::verdict::queued:
            return stand_in_line(h, asked, *answer, now);
        case acquire_answer::verdict::refused:
            h.quest_.may_have_run = false;  // it ran, and left nothing behind
            h.quest_.at = stage::asking;
            return refuse(h, {code_for(answer->why), "", answer->holder_left, std::string(answer->holder)}, now);
        case acquire_answer::verdict::gone:
        case acquire_answer::verdict::held:
            return lose(h, errc::not_held);
    }
}

void engine::stand_in_line(hold& h, const call& asked, const acquire_answer& answer, instant now) {
    hold::quest& q = h.quest_;
    q.at = stage::in_line;
    q.ticket = answer.ticket;
    q.fence_then = answer.fence;
    q.last_answered_poll = asked.written_at();
    q.polled_on_this_link = true;
    q.holder = answer.holder;
    q.holder_until = answer.holder_left ? std::optional(now + *answer.holder_left) : std::nullopt;
    milliseconds wait = poll_interval(h.terms_.lease);
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
    set_timer(h, now);
}

void engine::believe_push(hold& h, fencing_token token, instant now) {
    if (h.state_ == state::leaving) return give_back(h, token, now);
    if (h.state_ == state::held && h.quest_.at == stage::none) {
        if (token <= h.token_) return;
        return notice(h,
                      {.what = scripts::hold_answer::verdict::done,
                       .holder_left = {},
                       .holder = {},
                       .held = shape::both,
                       .token = token},
                      now);
    }
    const hold::quest& q = h.quest_;
    if (q.at != stage::in_line || !q.polled_on_this_link || token <= q.fence_then) return;
    const instant end = q.last_answered_poll + h.terms_.lease - drift(h.terms_.lease);
    // Little is left by our cautious reckoning, though the lease is fresh: a poll makes it full and proves it.
    if (end - now < h.terms_.lease / 3) return poll(h, now);
    granted(h, token, q.last_answered_poll, now, observer::how::handed_over);
}

void engine::granted(hold& h, fencing_token token, instant proved_at, instant now, observer::how got) {
    floor_ = std::max(floor_, token);
    if (h.state_ == state::held && h.quest_.at != stage::none) return upgraded(h, token, proved_at, now, got);
    if (h.state_ == state::held) {
        // The answer to a poll that was under way when the grant was pushed: a renewal, if it is the same grant.
        if (token != h.token_) return lose(h, errc::held_by_other);
        if (ran_out(h, now)) return lose(h, errc::lost);
        extend_validity(h, proved_at);
        return set_timer(h, now);
    }
    h.token_ = token;
    h.state_ = state::held;
    extend_validity(h, proved_at);
    if (h.valid_until_ - margin(h.terms_.lease) <= now) {
        // The answer took as long as the lease. One who waits asks again; one who does not gives it back.
        h.state_ = state::wanted;
        h.quest_.at = stage::in_line;
        if (h.quest_.limit.wait == waiting::in_line) return poll(h, now);
        return refuse(h, {errc::request_timed_out, settings_.server + ": the answer took as long as the lease", {}, {}},
                      now);
    }
    h.shape_ = h.terms_.want == access::shared ? shape::reading : shape::writing;
    (h.terms_.want == access::shared ? h.shared_ : h.exclusive_) = 1;
    if (h.terms_.owner != owner_id::nobody) owned_.emplace(owned_lock{h.terms_.owner, h.terms_.keys->lock}, &h);
    h.granted_at_ = now;
    watcher_.on_acquired(now - h.quest_.asked_at, got);
    acquire_request* const request = end_quest(h);
    set_timer(h, now);
    request->acquired(h);
}

void engine::upgraded(hold& h, fencing_token token, instant proved_at, instant now, observer::how got) {
    if (ran_out(h, now)) return lose(h, errc::lost);
    adopt(h, token);
    h.shape_ = shape::both;
    h.exclusive_ = 1;
    extend_validity(h, proved_at);
    watcher_.on_acquired(now - h.quest_.asked_at, got);
    acquire_request* const request = end_quest(h);
    set_timer(h, now);
    request->acquired(h);
}

// Nothing is asked for any more; returns whom to tell.
acquire_request* engine::end_quest(hold& h) {
    acquire_request* const request = h.quest_.request;
    if (request != nullptr) request->subject_ = nullptr;
    h.quest_ = {};
    if (!h.stray_copies_) in_line_.erase(h.id_.text());
    return request;
}

// Nobody listens to its answer any more. True if it may run all the same.
bool engine::drop_ask(hold& h) {
    const bool written = h.asking_ != nullptr && h.asking_->life() == redis::command::state::written;
    if (written) h.orphaned_ask_ = true;
    drop_call(h.asking_);
    return written;
}

errc engine::too_late(const hold& h) noexcept {
    return h.quest_.limit.wait == waiting::in_line ? errc::timed_out : errc::request_timed_out;
}

void engine::mark_stray(hold& h) {
    h.stray_copies_ = true;
    in_line_.emplace(h.id_.text(), &h);  // a grant that such a copy gets is pushed to this id, and given back
}

void engine::failed_acquire(hold& h, const failure& why, instant now) {
    const bool unknown = why.code == errc::outcome_unknown;
    if (unknown) h.stray_copies_ = true;
    if (h.quest_.at == stage::none) {
        if (unknown) mark_stray(h);
        return;
    }
    if (unknown) {
        h.quest_.may_have_run = true;
        const bool may_repeat = h.quest_.repeats++ < h.terms_.max_repeats;
        if (now < h.quest_.limit.deadline && may_repeat) return ask(h, now);  // goes out on the next link
        // Not "outcome unknown" to the caller: what may have been got is given back.
        return refuse(h, {too_late(h), why.detail, {}, {}}, now);
    }
    refuse(h, {why.code, why.detail, {}, {}}, now);
}

// Ends the quest. If anything of it may be on the server, it is undone there; what was held before stays held.
void engine::refuse(hold& h, refusal why, instant now) {
    const hold::quest& q = h.quest_;
    const bool left_something = drop_ask(h) || q.may_have_run || h.stray_copies_ || q.at == stage::in_line;
    if (why.code == errc::timed_out && !q.holder.empty()) {
        why.holder = q.holder;
        if (q.holder_until) {
            why.holder_left = std::chrono::duration_cast<milliseconds>(std::max(*q.holder_until, now) - now);
        }
    }
    acquire_request* const request = end_quest(h);
    if (h.state_ == state::held) {
        if (left_something) cancel_upgrade(h, now);
        set_timer(h, now);
    } else if (left_something) {
        h.token_ = 0;  // any grant: nobody believes in this id any more
        leave(h, now);
    } else {
        forget(h);
    }
    watcher_.on_refused();
    request->refused(why);
}

void engine::check_waiting(hold& h, instant now) {
    if (now >= h.quest_.limit.deadline) {
        return refuse(h, {out_.link_is_up() ? too_late(h) : errc::unreachable, settings_.server, {}, {}}, now);
    }
    if (now >= h.quest_.poll_at) poll(h, now);
}

}  // namespace holdfast::engine
