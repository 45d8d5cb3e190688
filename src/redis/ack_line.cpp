#include "redis/ack_line.hpp"

#include "redis/command_writer.hpp"
#include "redis/error_reply.hpp"
#include "redis/session.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::redis {
// One command of a burst.
class ack_line::part final : public command {
public:
    using answer = void (ack_line::*)(const reply_view&, instant);
    using end = void (ack_line::*)(const failure&, instant);

    part(ack_line& owner, answer answered, end failed) : owner_(owner), answered_(answered), failed_(failed) {}
    void on_reply(const reply_view& reply, instant now) override { (owner_.*answered_)(reply, now); }
    void on_failure(const failure& why, instant now) override { (owner_.*failed_)(why, now); }

private:
    ack_line& owner_;
    const answer answered_;
    const end failed_;
};

ack_line::ack_line(session& own_link, const std::string& client_id)
    : link_(own_link),
      message_(encoded_command({"PUBLISH", "hf:ack:" + client_id, "1"})),
      say_(std::make_unique<part>(*this, &ack_line::said, &ack_line::not_said)),
      look_(std::make_unique<part>(*this, &ack_line::looked, &ack_line::not_said)),
      wait_(std::make_unique<part>(*this, &ack_line::counted, &ack_line::failed)) {}

ack_line::~ack_line() = default;

void ack_line::submit(command& request, const question& about) {
    routing::begin(request);
    routing::set_waiting(request);
    if (newest_run_ != about.run_id) {
        newest_run_ = about.run_id;
        ++runs_;
    }
    entries& to = about.run_id.empty() ? nameless_ : queue_;
    to.push_back({&request, about.wanted, runs_});
    spots_[&request] = {&to, std::prev(to.end())};
}

bool ack_line::withdraw(command& request) {
    const auto found = spots_.find(&request);
    if (found == spots_.end()) return false;
    found->second.of->erase(found->second.at);
    spots_.erase(found);
    routing::set_idle(request);
    // Nobody is left for whom it should be sent; a WAIT in vain would keep others waiting.
    if (burst_.empty() && link_.withdraw(*say_)) {
        link_.withdraw(*look_);
        link_.withdraw(*wait_);
    }
    return true;
}

command& ack_line::take_first(entries& from) {
    command& request = *from.front().request;
    from.pop_front();
    spots_.erase(&request);
    return request;
}

void ack_line::move(entries::iterator each, entries& to) {
    spot& where = spots_.at(each->request);
    to.splice(to.end(), *where.of, each);
    where.of = &to;
}

bool ack_line::is_under_way() const noexcept {
    return wait_->life() == command::state::waiting || wait_->life() == command::state::written;
}

void ack_line::flush(instant now) {
    refuse_those_without_run(now);
    if (!queue_.empty() && !is_under_way()) begin_burst(now);
}

void ack_line::refuse_those_without_run(instant now) {
    while (!nameless_.empty()) {
        routing::fail(take_first(nameless_),
                      {errc::no_permission,
                       link_.settings().display() +
                           ": replicas can be asked for only if INFO is allowed, which tells one run from another"},
                      now);
    }
}

// All who want the same as the first. The others are next.
void ack_line::begin_burst(instant now) {
    const acknowledgement wanted = queue_.front().wanted;
    for (auto next = queue_.begin(); next != queue_.end();) {
        const auto each = next++;
        if (each->wanted == wanted) move(each, burst_);
    }
    say_->set_payload(message_);
    look_->set_payload(encoded_command({"INFO", "replication"}));
    wait_->set_payload(
        encoded_command({"WAIT", std::to_string(wanted.replicas), std::to_string(wanted.within.count())}));
    why_not_said_ = failure{errc::outcome_unknown, link_.settings().display() + ": not sent"};
    shown_ = {};
    link_.submit(*say_, now);
    link_.submit(*look_, now);
    link_.submit(*wait_, now);
}

void ack_line::said(const reply_view& reply, instant) {
    why_not_said_.reset();
    if (reply.is_error()) why_not_said_ = classify_error(reply.text(), link_.settings().display());
}

void ack_line::looked(const reply_view& reply, instant) {
    if (reply.is_error()) {
        why_not_said_ = classify_error(reply.text(), link_.settings().display());
    } else {
        shown_ = read_replication(reply);
    }
}

void ack_line::not_said(const failure& why, instant) {
    why_not_said_ = why;
}

bool ack_line::leads_elsewhere(const std::optional<failure>& trouble) const {
    return shown_.is_replica || link_.facts().run_id != newest_run_ || (trouble && spoils_link(trouble->code));
}

// The same process, and another history: it was a replica meanwhile.
bool ack_line::has_new_history() {
    const std::string run = std::exchange(last_run_, link_.facts().run_id);
    const std::string history = std::exchange(last_history_, shown_.history);
    return run == last_run_ && history != last_history_;
}

void ack_line::counted(const reply_view& reply, instant now) {
    const std::string& server = link_.settings().display();
    const failure wrong_server{errc::outcome_unknown,
                               server + ": another server than before was asked for its replicas"};
    std::optional<failure> trouble = why_not_said_;
    if (!trouble && reply.is_error()) trouble = classify_error(reply.text(), server);
    if (leads_elsewhere(trouble)) {
        failed(wrong_server, now);
        return link_.distrust(wrong_server, now);
    }
    if (trouble) return failed(*trouble, now);
    if (has_new_history()) return failed(wrong_server, now);
    const unsigned run = runs_;  // who is told may name another
    while (!burst_.empty()) {
        const bool was_done_here = burst_.front().run == run;
        command& request = take_first(burst_);
        if (was_done_here) {
            routing::answer(request, reply, now);
        } else {
            routing::fail(request, wrong_server, now);
        }
    }
}

void ack_line::failed(const failure& why, instant now) {
    while (!burst_.empty()) routing::fail(take_first(burst_), why, now);
}

}  // namespace holdfast::redis
