// Asking for a lock and standing in line for it.

#include "engine/engine.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;
using scripts::mutex::acquire_answer;

constexpr milliseconds longest_poll_interval{10'000};
// A foreign holder publishes nothing when it lets go: the first in line looks again and again.
constexpr milliseconds foreign_poll_shortest{50};
constexpr milliseconds foreign_poll_longest{250};
// After the holder's lease has ended the first in line looks first; the others leave it time to.
constexpr milliseconds after_deadline{2};
constexpr milliseconds stagger{25};
constexpr std::size_t most_staggered = 9;

milliseconds poll_interval(milliseconds lease) {
    return std::clamp(lease / 3, 1ms, longest_poll_interval);
}

}  // namespace

void engine::acquire(acquire_request& request, acquire_terms terms, instant now) {
    if (hold* const mine = find(terms.owner, *terms.keys)) {
        // After a sleep the caller may be here before the timer: what ran out meanwhile is not entered again.
        if (mine->state_ == state::held && ran_out(*mine, now)) lose(*mine, errc::lost);
        if (mine->state_ != state::held) {
            return request.refused(
                {errc::lost, "the hold was lost; release it as often as it was taken first", {}, {}});
        }
        if (mine->depth_ >= settings_.max_depth) return request.refused({errc::too_deep, "", {}, {}});
        ++mine->depth_;
        watcher_.on_reentered();
        if (mine->terms_.renewing == renewal::none && mine->renewing_ == nullptr) send_renewal(*mine, now);
        return request.acquired(*mine);
    }
    hold& h = holds_.emplace_back();
    h.self_ = std::prev(holds_.end());
    h.id_ = hold_id(client_, ++next_counter_, random_);
    h.terms_ = std::move(terms);
    h.asked_at_ = now;
    h.request_ = &request;
    request.subject_ = &h;
    if (h.terms_.wait == waiting::in_line) {
        if (!std::exchange(subscribed_, true)) out_.subscribe(channel());
        in_line_.emplace(h.id_.text(), &h);
    }
    set_waiting_timer(h);
    ask(h, now);
}

void engine::cancel(acquire_request& request, errc why, instant now) {
    hold* const h = request.subject_;
    if (h == nullptr || h->request_ != &request) return;
    refuse(*h, {why, "", {}, {}}, now);
}

void engine::ask(hold& h, instant now) {
    if (now < trusted_from_) {
        if (h.terms_.wait == waiting::not_at_all) return refuse(h, {errc::recovering, settings_.server, {}, {}}, now);
        h.poll_at_ = trusted_from_;
        return set_waiting_timer(h);
    }
    call& question = start_call(purpose::acquire, h);
    const bool waits = h.terms_.wait == waiting::in_line;
    const std::string wake_up = waits ? channel() : std::string();
    const milliseconds interval = poll_interval(h.terms_.lease);
    scripts::mutex::write(question, *h.terms_.keys,
                          {.id = h.id_.text(),
                           .lease = h.terms_.lease,
                           .token_floor = floor_,
                           .fence_retention = settings_.fence_retention,
                           .channel = wake_up,
                           .ticket = h.ticket_,
                           .poll_interval = interval,
                           .queue_retention = 6 * interval + 1s});
    question.give_up_at(h.terms_.deadline);
    h.asking_ = &question;
    out_.submit(question);
}

void engine::poll(hold& h, instant now) {
    h.poll_at_ = never;
    set_waiting_timer(h);
    if (h.asking_ == nullptr) ask(h, now);
}

void engine::set_waiting_timer(hold& h) {
    const instant due = std::min(h.terms_.deadline, h.poll_at_);
    if (due == never) {
        timers_.cancel(h);
    } else {
        timers_.set(h, due);
    }
}

void engine::answered_acquire(hold& h, const call& asked, const redis::reply_view& reply, instant now) {
    if (h.state_ == state::leaving || h.state_ == state::lost) return;  // undone or released meanwhile
    if (reply.is_error()) {
        const failure why = classify(reply);
        if (h.request_ != nullptr) refuse(h, {why.code, why.detail, {}, {}}, now);
        return;
    }
    const auto answer = scripts::mutex::read_acquire(reply);
    if (!answer) {
        if (h.request_ != nullptr) refuse(h, nonsense(), now);
        return;
    }
    switch (answer->what) {
        case acquire_answer::verdict::held:
            return granted(h, answer->token, asked.written_at(), now);
        case acquire_answer::verdict::queued:
            return stand_in_line(h, asked, *answer, now);
        case acquire_answer::verdict::refused:
            h.may_have_run_ = false;  // it ran, and left nothing behind
            return refuse(h, {errc::busy, "", answer->holder_left, std::string(answer->holder)}, now);
    }
}

void engine::stand_in_line(hold& h, const call& asked, const acquire_answer& answer, instant now) {
    // A poll that overlapped with a pushed grant answers "you hold"; "still in line" means that grant is over.
    if (h.state_ == state::held) return lose(h, errc::held_by_other);
    h.state_ = state::in_line;
    h.ticket_ = answer.ticket;
    h.fence_then_ = answer.fence;
    h.last_answered_poll_ = asked.written_at();
    h.polled_on_this_link_ = true;
    milliseconds wait = poll_interval(h.terms_.lease);
    if (answer.place == 0 && !is_ours(answer.holder)) {
        const auto spread = static_cast<std::uint64_t>((foreign_poll_longest - foreign_poll_shortest).count());
        const milliseconds chance(static_cast<std::int64_t>(random_.next() % (spread + 1)));
        wait = std::min(wait, foreign_poll_shortest + chance);
    }
    if (answer.holder_left) {
        const auto place = static_cast<int>(std::min(answer.place, most_staggered));
        wait = std::min(wait, *answer.holder_left + after_deadline + stagger * place);
    }
    h.poll_at_ = now + wait;
    set_waiting_timer(h);
}

void engine::believe_push(hold& h, fencing_token token, instant now) {
    if (h.state_ == state::leaving) return give_back(h, token, now);
    if (h.state_ != state::in_line || !h.polled_on_this_link_ || token <= h.fence_then_) return;
    const instant end = h.last_answered_poll_ + h.terms_.lease - drift(h.terms_.lease);
    // Little is left by our cautious reckoning, though the lease is fresh: a poll makes it full and proves it.
    if (end - now < h.terms_.lease / 3) return poll(h, now);
    granted(h, token, h.last_answered_poll_, now, observer::how::handed_over);
}

void engine::granted(hold& h, fencing_token token, instant proved_at, instant now, observer::how got) {
    floor_ = std::max(floor_, token);
    if (h.state_ == state::held) {
        // The answer to a poll that was under way when the grant was pushed: a renewal, if it is the same grant.
        if (token != h.token_) return lose(h, errc::held_by_other);
        if (ran_out(h, now)) return lose(h, errc::lost);
        extend_validity(h, proved_at);
        return set_holding_timer(h, now);
    }
    h.token_ = token;
    h.state_ = state::held;
    extend_validity(h, proved_at);
    if (h.valid_until_ - margin(h.terms_.lease) <= now) {
        // The answer took as long as the lease. One who waits asks again; one who does not gives it back.
        if (h.terms_.wait == waiting::not_at_all) {
            return refuse(
                h, {errc::request_timed_out, settings_.server + ": the answer took as long as the lease", {}, {}}, now);
        }
        h.state_ = state::in_line;
        return poll(h, now);
    }
    h.may_have_run_ = false;
    h.repeats_ = 0;
    in_line_.erase(h.id_.text());
    if (h.terms_.owner != owner_id::nobody) owned_.emplace(owned_lock{h.terms_.owner, h.terms_.keys->lock}, &h);
    set_holding_timer(h, now);
    h.granted_at_ = now;
    watcher_.on_acquired(now - h.asked_at_, got);
    acquire_request* const request = std::exchange(h.request_, nullptr);
    request->subject_ = nullptr;
    request->acquired(h);
}

errc engine::too_late(const hold& h) noexcept {
    return h.terms_.wait == waiting::in_line ? errc::timed_out : errc::request_timed_out;
}

void engine::failed_acquire(hold& h, const failure& why, instant now) {
    if (why.code == errc::outcome_unknown) h.stray_copies_ = true;
    if (h.request_ == nullptr) return;
    if (why.code == errc::outcome_unknown) {
        h.may_have_run_ = true;
        const bool may_repeat = h.repeats_++ < h.terms_.max_repeats;
        if (now < h.terms_.deadline && may_repeat) return ask(h, now);  // goes out on the next link
        // Not "outcome unknown" to the caller: what may have been got is given back.
        return refuse(h, {too_late(h), why.detail, {}, {}}, now);
    }
    refuse(h, {why.code, why.detail, {}, {}}, now);
}

// Ends the acquisition. If anything of it may be on the server, it is undone there.
void engine::refuse(hold& h, refusal why, instant now) {
    const bool unanswered = h.asking_ != nullptr && h.asking_->life() == redis::command::state::written;
    const bool left_something = unanswered || h.may_have_run_ || h.stray_copies_ || h.state_ != state::asking;
    acquire_request* const request = std::exchange(h.request_, nullptr);
    h.orphaned_ask_ = unanswered;
    drop_call(h.asking_);
    in_line_.erase(h.id_.text());
    if (left_something) {
        h.token_ = 0;  // any grant: nobody believes in this id any more
        leave(h, now);
    } else {
        forget(h);
    }
    if (request != nullptr) {
        watcher_.on_refused();
        request->subject_ = nullptr;
        request->refused(why);
    }
}

void engine::check_waiting(hold& h, instant now) {
    if (now >= h.terms_.deadline) {
        return refuse(h, {out_.link_is_up() ? too_late(h) : errc::unreachable, settings_.server, {}, {}}, now);
    }
    poll(h, now);
}

}  // namespace holdfast::engine
