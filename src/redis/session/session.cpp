#include "redis/session/session.hpp"

#include "base/assert.hpp"
#include "redis/resp/error_reply.hpp"
#include "redis/session/command_writer.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

constexpr char tls_alert = 0x15;
constexpr std::chrono::milliseconds longest_validity = std::chrono::hours(24 * 365);

std::chrono::nanoseconds doubled(std::chrono::milliseconds first, unsigned times, std::chrono::milliseconds most) {
    constexpr unsigned most_doublings = 16;
    return std::min<std::chrono::nanoseconds>(first * (1LL << std::min(times, most_doublings)), most);
}

}  // namespace

void session_listener::on_stranded(std::deque<command*> unwritten, const failure&, instant) {
    HOLDFAST_ASSERT(unwritten.empty());  // listeners of Cluster links override this
}

// One command of the greeting, or a PING. end_link() handles the loss of the link.
class session::greeting_command final : public command {
public:
    greeting_command(session& owner, greeting::reader* read) : owner_(owner), read_(read), speaks_(owner.facts_.resp) {}
    // What follows a refused HELLO in the same burst may fail for want of a login.
    void on_reply(const reply_view& reply, instant now) override {
        owner_.answered(speaks_ == owner_.facts_.resp ? read_ : nullptr, reply, now);
    }
    void on_failure(const failure&, instant) override {}

private:
    session& owner_;
    greeting::reader* const read_;
    const unsigned speaks_;
};

class session::subscribe_command final : public command {
public:
    subscribe_command(session& owner, const std::string& channel) : owner_(owner), channel_(channel) {
        set_subscription(channel_);
    }
    void on_reply(const reply_view& reply, instant now) override { owner_.subscribed(channel_, reply, now); }
    void on_failure(const failure&, instant) override {}

private:
    session& owner_;
    const std::string channel_;
};

// AUTH on a link that is up.
class session::login_command final : public command {
public:
    login_command(session& owner, login given) : owner_(owner), given_(std::move(given)) {
        set_payload(greeting::auth(given_.user, given_.password));
    }
    login take() { return std::move(given_); }
    void on_reply(const reply_view& reply, instant now) override { owner_.logged_in(reply, now); }
    void on_failure(const failure&, instant) override {}

private:
    session& owner_;
    login given_;
};

session::session(server_settings settings, session_listener& listener, std::uint64_t jitter_seed)
    : settings_(std::move(settings)),
      listener_(listener),
      wires_(resp_limits{.max_bulk_bytes = settings_.max_reply_bytes}),
      jitter_(jitter_seed),
      ping_(std::make_unique<greeting_command>(*this, nullptr)) {
    if (settings_.use == link_use::wakes) wires_.listen_in_resp2();
    ping_->set_payload(encoded_command({"PING"}));
}

session::~session() = default;

void session::submit(command& request, instant now) {
    wires_.submit(request);
    if (state_ == state::closed) {
        wires_.fail_waiting({errc::client_closed, settings_.display()}, now);
    } else {
        hurry(now);
    }
}

// Attempts are never more frequent than the shortest rest allows. Only on_timer() connects: the caller may be a
// callback of the link that just ended.
void session::hurry(instant now) {
    if (state_ != state::resting) return;
    rest_until_ = std::min(rest_until_, std::max(now, attempt_started_ + settings_.backoff_min));
}

void session::subscribe(std::string channel) {
    const auto [address, is_new] = channels_.try_emplace(std::move(channel), false);
    if (!is_new || !may_subscribe() || (state_ != state::up && state_ != state::settling)) return;
    send_subscription(address->first);
    if (state_ == state::settling) ++greetings_open_;  // the others are in flight
}

bool session::hears(std::string_view channel) const {
    const auto found = channels_.find(channel);
    return up() && found != channels_.end() && found->second;
}

void session::close(instant now) {
    if (state_ == state::closed) return;
    const bool had_link = linked();
    state_ = state::closed;
    hang_up_wish_ = true;
    seek_wish_ = connect_wish_ = false;
    const failure why{errc::client_closed, settings_.display()};
    wires_.link_down(why, now);
    wires_.fail_waiting(why, now);
    if (had_link) listener_.on_link_down(why, now);
}

void session::start_attempt(instant now) {
    greetings_.clear();
    new_login_.reset();
    attempt_started_ = now;
    if (settings_.sentinels && !std::exchange(found_unasked_, false)) {
        state_ = state::seeking;
        seek_wish_ = true;
    } else {
        start_connecting();
    }
}

void session::start_connecting() {
    if (!settings_.logins) return connect_now();
    state_ = state::asking;
    ask_for_login();
}

void session::ask_for_login() {
    ask_login_at_ = never;
    if (!std::exchange(login_asked_, true)) login_wish_ = true;
}

void session::log_in_with(login given, instant now) {
    login_asked_ = false;
    if (state_ == state::asking) {
        attempt_started_ = now;
        settings_.user = std::move(given.user);
        settings_.password = std::move(given.password);
        ask_before_expiry(given.expires_in, now);
        connect_now();
    } else if (state_ == state::up) {
        send_login(std::move(given), now);
    }
}

void session::no_login(const failure& why, instant now) {
    login_asked_ = false;
    if (state_ == state::up) return ask_again_later(why.detail, now);
    if (state_ != state::asking) return;
    if (!settings_.has_login()) return lose_link(why, now);
    settings_.logins->warn(why.detail + "; the last user and password are tried");
    attempt_started_ = now;
    connect_now();
}

// Asks when four fifths of the time are over, and a little earlier to spread many clients.
void session::ask_before_expiry(const std::optional<std::chrono::milliseconds>& expires_in, instant now) {
    vain_logins_ = 0;
    ask_login_at_ = never;
    if (!expires_in) return;
    const std::chrono::nanoseconds fifth = std::clamp(*expires_in, std::chrono::milliseconds(0), longest_validity) / 5;
    ask_login_at_ = now + std::max<std::chrono::nanoseconds>(3 * fifth + jitter_.spread(fifth), settings_.backoff_min);
}

void session::ask_again_later(const std::string& why, instant now) {
    const std::chrono::nanoseconds rest = doubled(settings_.backoff_min, vain_logins_++, settings_.backoff_max);
    settings_.logins->warn(why + "; the connection stays as it is, and is tried again in " +
                           std::to_string(std::chrono::ceil<std::chrono::milliseconds>(rest).count()) + " ms");
    ask_login_at_ = now + rest;
}

void session::send_login(login given, instant now) {
    const bool is_known = given.user == settings_.user && given.password == settings_.password;
    if (is_known && vain_logins_ == 0) return ask_before_expiry(given.expires_in, now);
    new_login_ = std::make_unique<login_command>(*this, std::move(given));
    wires_.submit_first(*new_login_);
}

void session::logged_in(const reply_view& reply, instant now) {
    login given = new_login_->take();
    if (reply.is_error()) {
        return ask_again_later(greeting::refused_login(reply.text(), settings_, given.password).detail, now);
    }
    settings_.user = std::move(given.user);
    settings_.password = std::move(given.password);
    ask_before_expiry(given.expires_in, now);
}

// User and password that may change: the server may know new ones already, or not yet.
void session::greeting_refused(const failure& why, instant now) {
    const bool is_login = why.code == errc::wrong_password || why.code == errc::auth_required;
    if (!settings_.logins || !is_login) return lose_link(why, now);
    const bool again =
        refused_login_ && refused_login_->user == settings_.user && refused_login_->password == settings_.password;
    settings_.logins->warn(why.detail);
    refused_login_ = login{settings_.user, settings_.password};
    end_link(why, again && !was_up_ ? news::failed : news::suspected, now);
}

void session::connect_now() {
    state_ = state::connecting;
    shaking_hands_ = false;
    connect_wish_ = true;
}

void session::found(const server_address& there, instant now) {
    if (state_ == state::closed) return;
    const bool is_elsewhere = server_address{settings_.host, settings_.port} != there;
    const bool is_sought = state_ == state::seeking;
    const bool is_in_use = !is_sought && state_ != state::resting;
    if (is_in_use && !is_elsewhere) return;
    const failure why{errc::unreachable,
                      settings_.display() + ": its sentinels say that the primary is now at " + to_text(there)};
    settings_.host = there.host;
    settings_.port = there.port;
    if (is_sought) {
        seek_wish_ = false;
        attempt_started_ = now;
        return start_connecting();
    }
    // An unasked address means that another server took over. Only on_timer() connects: see hurry().
    found_unasked_ = true;
    rest_until_ = now;
    if (is_elsewhere) failed_attempts_ = 0;
    if (is_in_use) end_link(why, news::moved, now);
}

void session::connected(instant now) {
    HOLDFAST_ASSERT(state_ == state::connecting);
    state_ = state::greeting;
    wires_.link_up();
    heard_bytes_ = false;
    last_heard_ = now;
    facts_ = {};
    if (settings_.resp == resp_choice::resp2) return greet_in_resp2();
    send_greeting(greeting::hello(settings_), greeting::read_hello);
    if (settings_.database != 0) send_greeting(greeting::select(settings_), greeting::read_select);
    send_greeting(encoded_command({"CLIENT", "INFO"}), greeting::read_client_info);
    send_greeting(encoded_command({"INFO", "server"}), greeting::read_server_info);
}

void session::greet_in_resp2() {
    facts_.resp = 2;
    for (greeting::question& each : greeting::in_resp2(settings_)) send_greeting(std::move(each.command), each.read);
}

void session::send_greeting(std::string payload, greeting::reader* read) {
    auto& request = *greetings_.emplace_back(std::make_unique<greeting_command>(*this, read));
    request.set_payload(std::move(payload));
    wires_.submit_first(request);
    ++greetings_open_;
}

// A null reader: nothing is to be learnt from the answer.
void session::answered(greeting::reader* read, const reply_view& reply, instant now) {
    if (state_ == state::up) return;  // a PING
    if (read == greeting::read_hello && settings_.resp == resp_choice::either &&
        greeting::lacks_hello(reply, settings_)) {
        greet_in_resp2();
    } else if (read != nullptr) {
        if (const auto why = read(reply, settings_, facts_)) return greeting_refused(*why, now);
    }
    greeting_answered(now);
}

void session::subscribed(const std::string& channel, const reply_view& reply, instant now) {
    if (reply.is_error()) {
        const failure why = classify_error(reply.text(), settings_.display());
        if (!is_permanent(why.code)) return lose_link(why, now);  // tried again on the next link
        // Only listeners of this channel are affected: holds are still renewed and released.
        channels_.erase(channel);
        if (state_ == state::settling) --greetings_open_;
        listener_.on_subscription_refused(why, now);
        if (state_ == state::settling && greetings_open_ == 0) come_up(now);
        return;
    }
    channels_.find(channel)->second = true;
    if (state_ == state::settling) greeting_answered(now);
}

void session::greeting_answered(instant now) {
    if (--greetings_open_ > 0) return;
    if (state_ == state::greeting) {
        settle(now);
    } else if (state_ == state::settling) {
        come_up(now);
    }
}

void session::settle(instant now) {
    state_ = state::settling;
    if (std::string kill = greeting::kill_previous(previous_, facts_); !kill.empty()) {
        send_greeting(std::move(kill), nullptr);
    }
    if (std::string question = greeting::shards(settings_, facts_); !question.empty()) {
        send_greeting(std::move(question), greeting::read_shards);
    }
    if (!may_subscribe()) return greetings_open_ == 0 ? come_up(now) : void();
    for (auto& [channel, is_confirmed] : channels_) {
        is_confirmed = false;
        send_subscription(channel);
        ++greetings_open_;
    }
    if (greetings_open_ == 0) come_up(now);
}

void session::send_subscription(const std::string& channel) {
    wires_.submit_first(*greetings_.emplace_back(std::make_unique<subscribe_command>(*this, channel)));
}

void session::come_up(instant now) {
    if (const auto why = listener_.objection(facts_)) return lose_link(*why, now);
    state_ = state::up;
    was_up_ = true;
    failed_attempts_ = 0;
    refused_login_.reset();
    last_heard_ = now;
    previous_ = facts_;
    wires_.open_gate();
    listener_.on_link_up(facts_, now);
}

void session::received(std::size_t count, instant now) {
    HOLDFAST_ASSERT(linked());
    last_heard_ = now;
    const bool first = !std::exchange(heard_bytes_, true);
    if (first && settings_.kind != transport::tls && count > 0 && room_.front() == tls_alert) {
        return lose_link({errc::tls_expected, settings_.display() + " answered with a TLS alert"}, now);
    }
    wires_.commit(count);
    if (auto why = wires_.deliver(listener_, now)) {
        why->detail.insert(0, settings_.display() + ": ");
        lose_link(*why, now);
    }
}

void session::failed(failure why, instant now) {
    // A peer that closes before it has sent anything may expect TLS, or not expect it. A server that was up before is
    // only in trouble.
    const bool silent = state_ == state::greeting && !heard_bytes_;
    const bool shaking_hands = state_ == state::connecting && shaking_hands_;
    // The sentinels' password may change, too.
    const bool is_for_sentinels = state_ == state::seeking && settings_.sentinels->logins;
    if (is_for_sentinels && was_up_ && why.code == errc::wrong_password) return end_link(why, news::suspected, now);
    if (was_up_ || why.code != errc::unreachable) return lose_link(why, now);
    // A guess: a proxy closes, too, while the server behind it is starting.
    if (silent && settings_.kind == transport::tcp) why.code = errc::tls_expected;
    if (shaking_hands) why.code = errc::tls_unexpected;
    end_link(why, news::suspected, now);
}

// Before the first call of a command or the listener the session rests: it takes commands and starts no attempt.
// Commands that wait stay in its queue, where their owners may withdraw them, until it is their turn.
void session::end_link(const failure& why, news what, instant now) {
    if (state_ == state::closed || state_ == state::resting) return;
    const bool was_linked_up = state_ == state::up;
    state_ = state::resting;
    hang_up_wish_ = true;
    seek_wish_ = connect_wish_ = false;
    ask_login_at_ = never;
    greetings_open_ = 0;
    if (what != news::moved) rest_until_ = now + next_rest();
    last_failure_ = why;
    wires_.link_down(why, now);
    const bool strands = settings_.use == link_use::cluster;
    const bool is_final = what == news::failed && is_permanent(why.code);
    if (!strands && is_final) wires_.fail_waiting(why, now);
    if (!strands && !is_final && what != news::moved && !was_up_) wires_.fail_impatient(why, now);
    if (was_linked_up) listener_.on_link_down(why, now);
    if (!strands) return;
    failure told = why;
    // The next attempt may have another password. What is suspected of TLS is told as it is.
    const bool is_login = why.code == errc::wrong_password || why.code == errc::auth_required;
    if (what == news::suspected && is_login) told.code = errc::unreachable;
    listener_.on_stranded(wires_.take_waiting(), told, now);
}

std::chrono::nanoseconds session::next_rest() {
    return jitter_.spread(doubled(settings_.backoff_min, failed_attempts_++, settings_.backoff_max));
}

failure session::why_not_up() const {
    if (state_ == state::up) {
        return {errc::request_timed_out, settings_.display() + " took no more requests before the deadline"};
    }
    if (state_ == state::asking && failed_attempts_ == 0) {
        return {errc::no_credentials, settings_.display() + ": the callback has not given user and password yet"};
    }
    if (failed_attempts_ == 0 && last_failure_.detail.empty()) {
        return {errc::unreachable, settings_.display() + ": not connected before the deadline"};
    }
    return last_failure_;
}

failure session::why_too_slow() const {
    const std::string within = " in " + std::to_string(settings_.connect_timeout.count()) + " ms";
    if (state_ != state::connecting) {
        return {errc::request_timed_out, settings_.display() + " did not answer the greeting" + within};
    }
    // A plain port takes a TLS hello for the beginning of a long line and waits for its end. A server that was up
    // before hangs: it may recover or be replaced, so waiting commands go on waiting.
    if (shaking_hands_) {
        return {was_up_ ? errc::request_timed_out : errc::tls_unexpected,
                settings_.display() + " did not answer the TLS handshake" + within};
    }
    return {errc::unreachable, settings_.display() + ": no connection" + within};
}

failure session::due_for_login() const {
    return {errc::unreachable, settings_.display() + ": the connection for wake-ups logs in anew"};
}

void session::check_health(instant now) {
    const instant oldest = wires_.oldest_unanswered();
    if (oldest != never && now >= oldest + settings_.request_timeout) {
        return lose_link({errc::request_timed_out, settings_.display() + " has not answered a request in " +
                                                       std::to_string(settings_.request_timeout.count()) + " ms"},
                         now);
    }
    if (now >= ask_login_at_) {
        // A link that listens by RESP2 cannot log in anew.
        if (settings_.use == link_use::wakes) return end_link(due_for_login(), news::moved, now);
        ask_for_login();
    }
    const bool idle = oldest == never && now >= last_heard_ + settings_.health_interval;
    if (idle && ping_->life() != command::state::waiting) wires_.submit_first(*ping_);
}

void session::on_timer(instant now) {
    if (state_ == state::resting) {
        if (now >= rest_until_) start_attempt(now);
    } else if (is_being_made()) {
        if (now >= attempt_started_ + settings_.connect_timeout) lose_link(why_too_slow(), now);
    } else if (state_ == state::up) {
        check_health(now);
    }
    // Last: if an attempt or a link ends at the same instant, callers get that reason.
    wires_.expire(why_not_up(), now);
}

instant session::deadline() const noexcept {
    if (state_ == state::closed) return never;
    const instant waiting = wires_.earliest_deadline();
    if (state_ == state::resting) return std::min(waiting, rest_until_);
    if (is_being_made()) return std::min(waiting, attempt_started_ + settings_.connect_timeout);
    // The sentinels have timeouts of their own, and a callback may take long.
    if (state_ == state::seeking || state_ == state::asking) return waiting;
    const instant oldest = wires_.oldest_unanswered();
    const bool is_idle = oldest == never;
    return std::min({waiting, ask_login_at_,
                     is_idle ? last_heard_ + settings_.health_interval : oldest + settings_.request_timeout});
}

}  // namespace holdfast::redis
