#include "redis/ack_line.hpp"

#include "redis/command_writer.hpp"
#include "redis/error_reply.hpp"
#include "redis/hash_slot.hpp"
#include "redis/session.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

// Long enough for any WAIT; nobody reads what was written.
constexpr std::string_view lives_for_ms = "10000";

}  // namespace

class ack_line::own_write final : public command {
public:
    explicit own_write(ack_line& owner) : owner_(owner) {}
    void on_reply(const reply_view& reply, instant) override { owner_.written(reply); }
    void on_failure(const failure& why, instant) override { owner_.why_not_written_ = why; }

private:
    ack_line& owner_;
};

class ack_line::own_wait final : public command {
public:
    explicit own_wait(ack_line& owner) : owner_(owner) {}
    void on_reply(const reply_view& reply, instant now) override { owner_.counted(reply, now); }
    void on_failure(const failure& why, instant now) override { owner_.failed(why, now); }

private:
    ack_line& owner_;
};

ack_line::ack_line(session& own_link, std::string client_id)
    : link_(own_link),
      client_id_(std::move(client_id)),
      write_(std::make_unique<own_write>(*this)),
      wait_(std::make_unique<own_wait>(*this)) {}

ack_line::~ack_line() = default;

void ack_line::submit(command& request, const question& about) {
    routing::begin(request);
    routing::set_waiting(request);
    queue_.push_back({&request, about.wanted, std::string(about.run_id), std::string(about.key)});
}

bool ack_line::withdraw(command& request) {
    const auto is_it = [&request](const entry& each) { return each.request == &request; };
    if (std::erase_if(queue_, is_it) + std::erase_if(burst_, is_it) == 0) return false;
    routing::set_idle(request);
    // Nobody is left for whom it should be sent; a WAIT in vain would keep others waiting.
    if (burst_.empty() && link_.withdraw(*write_)) link_.withdraw(*wait_);
    return true;
}

bool ack_line::is_under_way() const noexcept {
    return wait_->life() == command::state::waiting || wait_->life() == command::state::written;
}

void ack_line::flush(instant now) {
    if (is_under_way() || queue_.empty()) return;
    refuse_those_without_run(now);
    if (!queue_.empty() && !is_under_way()) begin_burst(now);
}

void ack_line::refuse_those_without_run(instant now) {
    const auto cannot_be_told = [](const entry& each) { return each.run_id.empty(); };
    for (auto at = queue_.begin(); (at = std::find_if(queue_.begin(), queue_.end(), cannot_be_told)) != queue_.end();) {
        command& request = *at->request;
        queue_.erase(at);
        routing::fail(request,
                      {errc::no_permission,
                       link_.settings().display() +
                           ": replicas can be asked for only if INFO is allowed, which tells one run from another"},
                      now);
    }
}

// All who want the same as the first. The others are next.
void ack_line::begin_burst(instant now) {
    const acknowledgement wanted = queue_.front().wanted;
    const std::string key = "hf:ack:{" + std::string(hash_tag(queue_.front().key)) + "}:" + client_id_;
    for (entry& each : queue_) {
        if (each.wanted == wanted) burst_.push_back(std::move(each));
    }
    std::erase_if(queue_, [&](const entry& each) { return each.wanted == wanted; });
    std::string write;
    append_command(write, {"SET", key, "1", "PX", lives_for_ms});
    write_->set_payload(std::move(write));
    std::string wait;
    append_command(wait, {"WAIT", std::to_string(wanted.replicas), std::to_string(wanted.within.count())});
    wait_->set_payload(std::move(wait));
    why_not_written_ = failure{errc::outcome_unknown, link_.settings().display() + ": not written"};
    link_.submit(*write_, now);
    link_.submit(*wait_, now);
}

void ack_line::written(const reply_view& reply) {
    why_not_written_.reset();
    if (reply.is_error()) why_not_written_ = classify_error(reply.text(), link_.settings().display());
}

void ack_line::counted(const reply_view& reply, instant now) {
    const std::string& server = link_.settings().display();
    if (reply.is_error()) return failed(classify_error(reply.text(), server), now);
    if (why_not_written_) return failed(*why_not_written_, now);
    const std::string run_id = link_.facts().run_id;
    const failure wrong_server{errc::outcome_unknown,
                               server + ": another server than before was asked for its replicas"};
    bool is_old = false;
    while (!burst_.empty()) {
        const entry answered = std::move(burst_.front());
        burst_.pop_front();
        if (answered.run_id == run_id) {
            routing::answer(*answered.request, reply, now);
        } else {
            is_old = true;
            routing::fail(*answered.request, wrong_server, now);
        }
    }
    // It may lead to a server that was replaced, and would go on doing so.
    if (is_old) link_.distrust(wrong_server, now);
}

void ack_line::failed(const failure& why, instant now) {
    while (!burst_.empty()) {
        command& request = *burst_.front().request;
        burst_.pop_front();
        routing::fail(request, why, now);
    }
}

}  // namespace holdfast::redis
