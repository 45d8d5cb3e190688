#include "redis/session/multiplexer.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

void multiplexer::submit(command& request) {
    HOLDFAST_ASSERT(request.state_ == command::state::idle || request.state_ == command::state::done);
    request.state_ = command::state::waiting;
    request.abandoned_ = request.of_the_link_ = false;
    waiting_.add(request);
}

void multiplexer::submit_first(command& request) {
    HOLDFAST_ASSERT(request.state_ == command::state::idle || request.state_ == command::state::done);
    request.state_ = command::state::waiting;
    request.of_the_link_ = true;
    first_.push_back(&request);
}

bool multiplexer::withdraw(command& request) {
    if (request.state_ != command::state::waiting) return false;
    if (!waiting_.remove(request)) {
        const auto found = std::find(first_.begin(), first_.end(), &request);
        HOLDFAST_ASSERT(found != first_.end());  // a waiting command is in a queue
        first_.erase(found);
    }
    request.state_ = command::state::idle;
    return true;
}

// All are done before the first callback, which may refer to another of them.
void multiplexer::fail_all(const std::deque<command*>& ended, const failure& why, instant now) {
    for (command* request : ended) request->state_ = command::state::done;
    for (command* request : ended) request->on_failure(why, now);
}

std::deque<command*> multiplexer::take_waiting() {
    std::deque<command*> taken = waiting_.take_all();
    for (command* request : taken) request->state_ = command::state::idle;
    return taken;
}

void multiplexer::fail_impatient(const failure& why, instant now) {
    fail_all(waiting_.take_if([](const command& each) { return !each.waits_for_first_link(); }), why, now);
}

// True: this command is the first to send the text of its script on this link.
bool multiplexer::brings_script(const command& request) {
    if (std::find(brought_.begin(), brought_.end(), request.script_) != brought_.end()) return false;
    brought_.push_back(request.script_);
    return true;
}

void multiplexer::write(command& request, instant now) {
    if ((request.text_at_first_ || request.send_text_) && brings_script(request)) request.send_text_ = true;
    request.append_to(output_);
    request.state_ = command::state::written;
    request.written_at_ = now;
    request.prelude_due_ = request.asking_ || request.unsubscribes_;
    written_.push_back(&request);
}

std::string_view multiplexer::begin_write(instant now) {
    HOLDFAST_ASSERT(output_.empty());
    for (command* request : first_) write(*request, now);
    first_.clear();
    if (gate_open_) {
        for (command* request : waiting_) write(*request, now);
        waiting_.clear();
    }
    return output_;
}

bool multiplexer::retry_with_text(command& request, const reply_view& reply) {
    if (request.script_ == nullptr || request.send_text_ || request.abandoned_ || !reply.is_error()) return false;
    if (!reply.text().starts_with("NOSCRIPT")) return false;
    request.send_text_ = true;
    request.state_ = command::state::waiting;
    waiting_.add_before_new(request);
    return true;
}

bool multiplexer::filter_takes(command& request, const reply_view& reply, instant now) {
    if (filter_ == nullptr || !reply.is_error() || request.abandoned_ || request.of_the_link_) return false;
    request.state_ = command::state::idle;
    return filter_->takes(request, reply, now);
}

bool multiplexer::is_push(const reply_view& reply) const {
    if (reply.type() == resp_type::push) return true;
    if (!listens_in_resp2_ || reply.type() != resp_type::array || reply.size() != 3) return false;
    const std::string_view kind = reply[0].text();
    return kind == "message" || kind == "subscribe" || kind == "unsubscribe";
}

bool multiplexer::confirms_subscription(const reply_view& push) const {
    if (written_.empty() || !written_.front()->confirmed_by_push_ || push.size() < 2) return false;
    const std::string_view kind = push[0].text();
    return (kind == "subscribe" || kind == "ssubscribe") && push[1].text() == written_.front()->first_key();
}

std::optional<failure> multiplexer::answer(const reply_view& reply, instant now) {
    if (written_.empty()) return failure{errc::protocol_error, "an answer came that nothing had asked for"};
    command& request = *written_.front();
    switch (request.look_at(reply)) {
        case command::standing::prelude:
            return std::nullopt;
        case command::standing::out_of_step:
            return failure{errc::protocol_error, "PING was not answered; is the user allowed to?"};
        case command::standing::answer:
            break;
    }
    written_.pop_front();
    // The server may not have kept a script that it refused to run.
    if (request.script_ != nullptr && reply.is_error()) std::erase(brought_, request.script_);
    if (retry_with_text(request, reply) || filter_takes(request, reply, now)) return std::nullopt;
    request.state_ = command::state::done;
    request.on_reply(reply, now);
    return std::nullopt;
}

std::optional<failure> multiplexer::deliver(push_listener& pushes, instant now) {
    const unsigned link = link_;
    reply_view reply;
    for (;;) {
        switch (reader_.next(reply)) {
            case resp_status::need_more:
                return std::nullopt;
            case resp_status::broken: {
                const bool malformed = reader_.fault() == resp_fault::malformed;
                return failure{malformed ? errc::protocol_error : errc::reply_too_large, reader_.fault_text()};
            }
            case resp_status::reply:
                break;
        }
        if (is_push(reply) && !confirms_subscription(reply)) {
            pushes.on_push(reply, now);
        } else if (auto why = answer(reply, now)) {
            return why;
        }
        if (link_ != link) return std::nullopt;  // a callback has ended this link
    }
}

void multiplexer::link_down(const failure& why, instant now) {
    ++link_;
    gate_open_ = false;
    brought_.clear();
    const std::deque<command*> unknown = std::exchange(written_, {});
    const std::deque<command*> greetings = std::exchange(first_, {});
    for (command* request : greetings) request->state_ = command::state::done;
    fail_all(unknown, {errc::outcome_unknown, why.detail}, now);
    fail_all(greetings, why, now);
}

}  // namespace holdfast::redis
