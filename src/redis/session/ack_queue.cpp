#include "redis/session/ack_queue.hpp"

#include "redis/resp/error_reply.hpp"
#include "redis/session/command_writer.hpp"
#include "redis/session/session.hpp"
#include "redis/slots/redirect.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::redis {
using std::chrono::milliseconds;

// One command of a burst.
class ack_queue::part final : public command {
public:
    using answer = void (ack_queue::*)(const reply_view&, instant);
    using end = void (ack_queue::*)(const failure&, instant);

    part(ack_queue& owner, answer answered, end failed) : owner_(owner), answered_(answered), failed_(failed) {}
    void on_reply(const reply_view& reply, instant now) override { (owner_.*answered_)(reply, now); }
    void on_failure(const failure& why, instant now) override { (owner_.*failed_)(why, now); }

private:
    ack_queue& owner_;
    const answer answered_;
    const end failed_;
};

// Checks for one request of a burst that its grant still exists, and writes something behind it.
class ack_queue::showing final : public command {
public:
    showing(const command& request, const std::string& server)
        : server_(server), trouble_({errc::outcome_unknown, server + ": not sent"}) {
        copy_script(request);
    }
    // None: the check succeeded.
    const std::optional<failure>& trouble() const noexcept { return trouble_; }
    milliseconds left() const noexcept { return left_; }

    void on_reply(const reply_view& reply, instant) override {
        trouble_.reset();
        left_ = std::min(milliseconds(reply.to_integer().value_or(0)), longest);
        if (reply.is_error()) {
            trouble_ = classify_error(reply.text(), server_);
            // The script was stopped half way, or the Cluster is down.
            if (trouble_->code == errc::server_error && read_redirect(reply.text(), {})) trouble_->code = errc::moving;
            if (reply.text().starts_with("NOSCRIPT"))
                trouble_->code = errc::outcome_unknown;  // the scripts were flushed just now
        } else if (left_ <= milliseconds(0)) {
            trouble_ = {errc::moving, server_ + ": what was granted is not there any more"};
        }
    }
    void on_failure(const failure& why, instant) override { trouble_ = why; }

private:
    // A server may answer anything. No lease is longer, and clocks can represent it.
    static constexpr milliseconds longest = std::chrono::hours(24 * 36500);

    const std::string server_;
    std::optional<failure> trouble_;
    milliseconds left_{0};
};

ack_queue::ack_queue(session& own_link, const std::string& channel)
    : link_(own_link),
      message_(channel.empty() ? std::string() : encoded_command({"PUBLISH", channel, "1"})),
      say_(std::make_unique<part>(*this, &ack_queue::said, &ack_queue::not_said)),
      look_(std::make_unique<part>(*this, &ack_queue::looked, &ack_queue::not_said)),
      wait_(std::make_unique<part>(*this, &ack_queue::counted, &ack_queue::failed)) {}

ack_queue::~ack_queue() = default;

void ack_queue::submit(command& request, const question& about) {
    routing::begin(request);
    routing::set_waiting(request);
    if (newest_run_ != about.run_id) {
        newest_run_ = about.run_id;
        ++runs_;
    }
    entries& to = about.run_id.empty() && !is_in_cluster() ? nameless_ : queue_;
    to.push_back({&request, about.wanted, runs_});
    spots_[&request] = {&to, std::prev(to.end())};
}

bool ack_queue::withdraw(command& request) {
    const auto found = spots_.find(&request);
    if (found == spots_.end()) return false;
    found->second.of->erase(found->second.at);
    spots_.erase(found);
    routing::set_idle(request);
    if (burst_.empty()) take_back_burst();
    return true;
}

// No request needs the burst any more, and a useless WAIT would delay others.
void ack_queue::take_back_burst() {
    command& first = showings_.empty() ? static_cast<command&>(*say_) : *showings_.front();
    if (!link_.withdraw(first)) return;
    for (const auto& each : showings_) link_.withdraw(*each);
    link_.withdraw(*look_);
    link_.withdraw(*wait_);
}

command& ack_queue::take_first(entries& from) {
    command& request = *from.front().request;
    from.pop_front();
    spots_.erase(&request);
    return request;
}

void ack_queue::move(entries::iterator each, entries& to) {
    spot& where = spots_.at(each->request);
    to.splice(to.end(), *where.of, each);
    where.of = &to;
}

bool ack_queue::is_in_flight() const noexcept {
    return wait_->life() == command::state::waiting || wait_->life() == command::state::written;
}

void ack_queue::flush(instant now) {
    refuse_those_without_run(now);
    if (!queue_.empty() && !is_in_flight()) begin_burst(now);
}

void ack_queue::refuse_those_without_run(instant now) {
    if (nameless_.empty()) return;
    fail_all(nameless_,
             {errc::no_permission,
              link_.settings().display() +
                  ": replicas can be asked for only if INFO is allowed, which tells one run from another"},
             now);
}

// Takes all requests that want the same as the first. The others follow in the next burst.
void ack_queue::begin_burst(instant now) {
    const acknowledgement wanted = queue_.front().wanted;
    for (auto next = queue_.begin(); next != queue_.end();) {
        const auto each = next++;
        if (each->wanted == wanted) move(each, burst_);
    }
    look_->set_payload(encoded_command({"INFO", "replication"}));
    wait_->set_payload(
        encoded_command({"WAIT", std::to_string(wanted.replicas), std::to_string(wanted.within.count())}));
    shown_ = {};
    say(now);
    link_.submit(*look_, now);
    link_.submit(*wait_, now);
}

void ack_queue::say(instant now) {
    if (!is_in_cluster()) {
        why_not_said_ = failure{errc::outcome_unknown, link_.settings().display() + ": not sent"};
        say_->set_payload(message_);
        return link_.submit(*say_, now);
    }
    why_not_said_.reset();
    showings_.clear();
    std::vector<const script*> brought;
    for (entry& each : burst_) {
        showings_.push_back(std::make_unique<showing>(*each.request, link_.settings().display()));
        each.shows = showings_.back().get();
        // The first command of a script carries its text, so the server knows it for the others.
        const script* const source = each.shows->source();
        if (std::find(brought.begin(), brought.end(), source) == brought.end()) {
            each.shows->send_text();
            brought.push_back(source);
        }
        link_.submit(*each.shows, now);
        each.shows->abandon();  // sent again it would run behind the WAIT
    }
}

void ack_queue::said(const reply_view& reply, instant) {
    why_not_said_.reset();
    if (reply.is_error()) why_not_said_ = classify_error(reply.text(), link_.settings().display());
}

void ack_queue::looked(const reply_view& reply, instant) {
    if (reply.is_error()) {
        why_not_said_ = classify_error(reply.text(), link_.settings().display());
    } else {
        shown_ = read_replication(reply);
    }
}

bool ack_queue::leads_elsewhere(const std::optional<failure>& trouble) const {
    const bool is_another = !is_in_cluster() && link_.facts().run_id != newest_run_;
    return shown_.is_replica || is_another || (trouble && spoils_link(trouble->code));
}

// The same process with another history: it was a replica meanwhile.
bool ack_queue::has_new_history() {
    const std::string run = std::exchange(last_run_, link_.facts().run_id);
    const std::string history = std::exchange(last_history_, shown_.history);
    const bool has_lost = run == last_run_ && history != last_history_;
    if (has_lost) ++lost_histories_;
    return has_lost;
}

void ack_queue::counted(const reply_view& reply, instant now) {
    const std::string& server = link_.settings().display();
    std::optional<failure> trouble = why_not_said_;
    if (!trouble && reply.is_error()) trouble = classify_error(reply.text(), server);
    // It became a replica after it had answered INFO.
    if (reply.is_error() && reply.text().starts_with("ERR WAIT cannot be used")) shown_.is_replica = true;
    if (leads_elsewhere(trouble)) {
        failed(wrong_server(), now);
        return link_.distrust(wrong_server(), now);
    }
    if (trouble) return failed(*trouble, now);
    if (has_new_history()) {
        while (!queue_.empty()) move(queue_.begin(), burst_);  // they may concern lost writes, too
        return failed(wrong_server(), now);
    }
    const unsigned run = runs_;  // callbacks may submit requests for another run
    while (!burst_.empty()) {
        const std::optional<failure> why = why_not(burst_.front(), run);
        const showing* const shows = burst_.front().shows;
        command& request = take_first(burst_);
        if (!why) {
            if (shows != nullptr) request.on_shown(shows->left(), shows->written_at());
            routing::answer(request, reply, now);
        } else {
            routing::fail(request, *why, now);
        }
    }
}

// None: the number counts for this request.
std::optional<failure> ack_queue::why_not(const entry& each, unsigned run) const {
    if (each.shows != nullptr) return each.shows->trouble();
    return each.run == run ? std::nullopt : std::optional(wrong_server());
}

failure ack_queue::wrong_server() const {
    return {errc::outcome_unknown,
            link_.settings().display() + ": another server than before was asked for its replicas"};
}

}  // namespace holdfast::redis
