#include "world/server.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server_model/sha1.hpp"
#include "wire/scripts.hpp"

namespace holdfast::sim {
namespace {

constexpr std::int64_t epoch_us = 1'700'000'000'000'000;
constexpr std::int64_t us_per_s = 1'000'000;
// time() lags by at most a tick. The exact length of a tick does not matter.
constexpr std::int64_t tick_us = 10'000;

bool is(std::string_view word, std::string_view upper) {
    const auto raised = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
    return std::equal(word.begin(), word.end(), upper.begin(), upper.end(),
                      [&](char a, char b) { return raised(a) == b; });
}

std::string shard_push(std::string_view what, std::string_view channel, std::size_t left) {
    return ">3\r\n" + bulk(what) + bulk(channel) + ":" + std::to_string(left) + "\r\n";
}

bool is_confirm(const words& command) {
    static const wire::script& mutex = wire::find("mutex/confirm");
    static const wire::script& read_write = wire::find("rw/confirm");
    const auto is_it = [&](const wire::script& one) { return command[1] == one.sha1 || command[1] == one.text; };
    return is_it(mutex) || is_it(read_write);
}

}  // namespace

bool is_sent_again(const value& answer) {
    constexpr std::string_view kinds[] = {"NOSCRIPT", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"};
    return std::any_of(std::begin(kinds), std::end(kinds),
                       [&](std::string_view kind) { return answer.text.starts_with(kind); });
}

bool is_half_run(const value& answer) {
    return answer.is_error() && answer.text.find("non local key") != std::string::npos;
}

server::server(timeline& time, random_stream random, server_options options, script_watcher& watcher)
    : time_(time),
      random_(random),
      options_(std::move(options)),
      watcher_(watcher),
      model_({.undeclared_keys = options_.undeclared_keys, .engine = options_.engine}),
      facts_random_(random_stream(random_).next() ^ 0xfac75U),
      offset_us_(epoch_us + static_cast<std::int64_t>(random_.below(1'000'000'000))),
      started_us_(offset_us_ - 3600 * us_per_s),
      rate_(1.0 + (static_cast<double>(random_.below(1001)) - 500.0) / 100'000.0) {
    if (options_.rate) {
        rate_ = *options_.rate;
    } else {
        denies_info_ = facts_random_.percent(4);
        draw_script_clock();
    }
    model_.on_message([this](const message& what) { deliver(what); });
    for (const auto& [original, mutant] : options_.replaced_scripts)
        replaced_sha1_[sha1_hex(original)] = sha1_hex(mutant);
}

// Of an older server: mostly a microsecond for each call; now and then the process has to wait for its core.
void server::draw_script_clock() {
    if (facts_random_.percent(50)) return;
    model_.let_time_pass_in_scripts([this]() -> std::int64_t {
        const bool waits = facts_random_.below(4'000) == 0;
        return waits ? 1 + static_cast<std::int64_t>(facts_random_.below(3'000)) : 1;
    });
}

std::int64_t server::now_us() const {
    const auto true_us = std::chrono::duration_cast<microseconds>(time_.now().time_since_epoch()).count();
    return std::max(told_us_, offset_us_ + static_cast<std::int64_t>(static_cast<double>(true_us) * rate_));
}

void server::accept(link& fresh) {
    fresh.id = next_link_++;
    fresh.address = "10.0.0." + std::to_string(fresh.client) + ":" + std::to_string(10'000 + fresh.id);
    fresh.server_open = true;
    links_[fresh.id] = &fresh;
}

void server::close(link& which) {
    if (!which.server_open) return;
    which.server_open = false;
    links_.erase(which.id);
    model_.unsubscribe_all(which.id);
    which.down.end();
}

void server::received(link& from, const packet& what) {
    from.unread.push_back(what);
    read(from);
}

void server::read(link& from) {
    if (time_.now() < stalled_until_) return time_.at(stalled_until_, [this, &from] { read(from); });
    while (from.server_open && !from.unread.empty()) {
        const packet first = std::move(from.unread.front());
        from.unread.pop_front();
        if (first.what == packet::kind::end) return close(from);
        from.commands.add(first.bytes);
        from.sent = first.sent;
        serve(from);
    }
}

void server::serve(link& from) {
    while (from.server_open && from.waits == 0) {
        const words& command = from.commands.next();
        if (command.empty()) return;
        answer(from, command);
    }
}

void server::answer(link& to, const words& command) {
    asking asked = std::exchange(to.asked, is(command[0], "ASKING") ? asking::yes : asking::no);
    if (options_.asks_remembered) asked = asking::yes;
    if (is(command[0], "SUBSCRIBE")) return subscribe(to, command[1]);
    if (is(command[0], "WAIT")) return wait(to, command);
    if (is(command[0], "SSUBSCRIBE") || is(command[0], "SUNSUBSCRIBE")) return listen_in_shard(to, command, asked);
    std::string out;
    if (is(command[0], "HELLO")) {
        out = greeting(to);
    } else if (is(command[0], "CLIENT") && is(command[1], "INFO")) {
        out = bulk("id=" + std::to_string(to.id) + " addr=" + to.address + " laddr=10.0.0.99:6379 fd=8\n");
    } else if (is(command[0], "INFO")) {
        out = tells_little() ? "-NOPERM this user has no permissions to run the 'info' command\r\n" : bulk(info());
    } else if (is(command[0], "CLUSTER") && member_ != nullptr) {
        out = member_->shards();
    } else {
        const std::uint64_t before = model_.writes();
        command_sent_ = to.sent;
        append_resp(out, execute(command, asked));
        if (lag_ && may_have_changed_something(command, before)) note_write(to, command);
    }
    if (to.server_open) to.down.send(std::move(out));
}

std::string server::greeting(const link& to) const {
    const bool replica = member_ != nullptr && member_->is_replica();
    return "%4\r\n" + bulk("version") + bulk("7.0.15") + bulk("role") + bulk(replica ? "replica" : "master") +
           bulk("mode") + bulk(member_ == nullptr ? "standalone" : "cluster") + bulk("id") + ":" +
           std::to_string(to.id) + "\r\n";
}

// As coarse as on a real server: the difference of two wall clock readings, each cut to whole seconds. The later one
// was remembered at most a tenth of a second ago.
std::int64_t server::uptime_s() {
    const std::int64_t start_told_us = started_us_ - started_us_ % tick_us;
    const auto remembered_us_ago = options_.rate ? 0 : static_cast<std::int64_t>(facts_random_.below(100'000));
    return std::max(now_us() - remembered_us_ago, started_us_) / us_per_s - start_told_us / us_per_s +
           (options_.uptimes_look_exact ? 1 : 0);
}

std::string server::info() {
    const std::string run = std::to_string(options_.runs_look_alike ? 0 : runs_);
    const std::string history = std::to_string(options_.runs_look_alike ? 0 : histories_);
    const bool replica = member_ != nullptr && member_->is_replica();
    return "# Server\r\nredis_version:7.0.15\r\nrun_id:run" + run + "\r\nserver_time_usec:" + std::to_string(now_us()) +
           "\r\nuptime_in_seconds:" + std::to_string(uptime_s()) +
           "\r\n# Replication\r\nrole:" + (replica ? "slave" : "master") + "\r\nmaster_replid:history" + history +
           "\r\n";
}

void server::subscribe(link& to, std::string_view channel) {
    model_.subscribe(to.id, channel);
    to.down.send(">3\r\n" + bulk("subscribe") + bulk(channel) + ":1\r\n");
}

// Handles one channel. The answer is an error, or a push with the number of subscriptions.
void server::listen_in_shard(link& to, const words& command, asking asked) {
    const std::string channel{command[1]};
    const bool begins = is(command[0], "SSUBSCRIBE");
    std::string out;
    if (const auto refusal = model_.channel_refusal(channel, asked)) {
        append_resp(out, *refusal);
        return to.down.send(std::move(out));
    }
    if (begins) {
        to.channels.insert(channel);
        model_.subscribe(to.id, channel, channel_kind::sharded);
    } else {
        to.channels.erase(channel);
        model_.unsubscribe(to.id, channel, channel_kind::sharded);
    }
    to.down.send(shard_push(begins ? "ssubscribe" : "sunsubscribe", channel, to.channels.size()));
}

void server::join(const membership* as) {
    member_ = as;
    model_.guard_slots(as);
}

void server::drop(const std::string& key) {
    model_.set_time(now_us());
    if (model_.take(key)) note_move();
}

// Clients in a WAIT get an error and lose their link.
void server::step_down() {
    slot_left([](std::string_view) { return true; });
    begin_history({});
    model_.restore({});
    const auto links = links_;
    for (const auto& [id, each] : links) {
        if (each->waits == 0) continue;
        each->waits = 0;
        each->down.send("-UNBLOCKED force unblock from blocking operation, instance state changed\r\n");
        close(*each);
    }
}

void server::step_up(server_model::snapshot data, std::int64_t clock_us) {
    set_clock(clock_us);
    begin_history(data);
    model_.restore(std::move(data));
}

void server::migrate(const std::string& key, server& to) {
    model_.set_time(now_us());
    std::optional<entry> taken = model_.take(key);
    if (!taken) return;
    if (taken->expires_ms != no_expiry) taken->expires_ms += to.now_us() / 1000 - now_us() / 1000;
    to.model_.put(key, *std::move(taken));
    to.moved_in_keys_.insert(key);
    note_move();
    to.note_move();
}

void server::slot_left(const std::function<bool(std::string_view)>& is_in_it) {
    for (const auto& [id, each] : links_) {
        for (auto at = each->channels.begin(); at != each->channels.end();) {
            if (!is_in_it(*at)) {
                ++at;
                continue;
            }
            const std::string channel = *at;
            at = each->channels.erase(at);
            model_.unsubscribe(id, channel, channel_kind::sharded);
            if (options_.slots_leave_silently) continue;
            each->down.send(shard_push("sunsubscribe", channel, each->channels.size()));
        }
    }
}

void server::deliver(const message& what) {
    const auto found = links_.find(what.connection);
    if (found == links_.end()) return;
    std::string push = message_push(what);
    if (options_.pushes_overtake) return found->second->down.put_in_front(std::move(push));
    found->second->down.send(std::move(push));
}

value server::execute(const words& command, asking asked) {
    model_.set_time(now_us());
    if (is(command[0], "ASKING")) return value::make_status("OK");
    if (is(command[0], "CLIENT")) return kill(command);
    if (is(command[0], "SELECT")) return value::make_status("OK");
    if (is(command[0], "EVAL") || is(command[0], "EVALSHA")) return run_script(command, asked);
    return model_.execute(arguments{command}, asked);
}

value server::run_script(const words& command, asking asked) {
    ++scripts_run_;
    watcher_.before_script(*this, command);
    value answer = options_.replaced_scripts.empty() ? model_.execute(arguments{command}, asked)
                                                     : model_.execute(arguments{with_replaced(command)}, asked);
    // Whoever watches sees the time by which the script has decided.
    const std::int64_t ended_us = model_.time_us();
    told_us_ = std::max(told_us_, model_.told_us());
    watcher_.after_script(command, answer);
    told_us_ = std::max(told_us_, ended_us);
    if (!answer.is_error() && is_stopped_half_way(command)) {
        answer = value::make_error("ERR Script attempted to access a non local key in a cluster node script: " +
                                   std::string(command[1]) + ", on @user_script:1.");
    }
    if (is_confirm(command)) answer = confirm_answer_as_clients_see_it(command[3], std::move(answer));
    return as_clients_see_it(std::move(answer));
}

words server::with_replaced(const words& command) const {
    words really = command;
    const auto& replaced = is(command[0], "EVAL") ? options_.replaced_scripts : replaced_sha1_;
    if (const auto found = replaced.find(command[1]); found != replaced.end()) really[1] = found->second;
    return really;
}

// Our scripts never touch a key again after emptying it, so real members do not stop them. Future scripts may do so,
// and clients must not rely on either. The end of the script is as good a point to stop as any.
bool server::is_stopped_half_way(const words& command) {
    if (options_.half_run_percent == 0 || member_ == nullptr || command[2] == "1") return false;
    const bool leaving = member_->standing_of(command[3]).at == slot_standing::where::leaving;
    return leaving && random_.percent(options_.half_run_percent);
}

// Mutants of clients are implemented by changing the answers that they receive.
value server::as_clients_see_it(value answer) const {
    if (!answer.is_error()) return answer;
    if (options_.asks_remembered && answer.text.starts_with("ASK ")) answer.text.replace(0, 3, "MOVED");
    if (options_.half_runs_look_refused && is_half_run(answer)) answer.text = "ERR refused";
    return answer;
}

value server::confirm_answer_as_clients_see_it(std::string_view lock, value answer) const {
    if (options_.moved_keys_unconfirmed && moved_in_keys_.contains(lock)) return value::make_integer(0);
    constexpr std::int64_t more_than_any_lease_ms = 3'600'000;
    const bool is_held = !answer.is_error() && answer.integer > 0;
    const bool is_altered = options_.confirm_answers_ignored || (options_.lease_left_ignored && is_held);
    return is_altered ? value::make_integer(more_than_any_lease_ms) : answer;
}

// On a lone server every script counts as a write, although a real server would not count one that only reads. On
// members that matters: a WAIT there covers what a script of the same link wrote, and replicas do not receive messages.
bool server::may_have_changed_something(const words& command, std::uint64_t writes_before) const {
    if (member_ != nullptr) return model_.writes() != writes_before;
    return is(command[0], "PUBLISH") || is(command[0], "EVAL") || is(command[0], "EVALSHA");
}

void server::note_write(link& by, const words& command) {
    ++writes_;
    if (!is(command[0], "PUBLISH") || !options_.acks_write_nothing) by.wrote = writes_;
    replicate();
}

// MIGRATE is a write on both members.
void server::note_move() {
    if (!lag_) return;
    moved_ = ++writes_;
    replicate();
}

void server::replicate() {
    last_replicated_ = std::max({last_replicated_, time_.now() + random_.within(*lag_), replica_held_until_});
    time_.at(last_replicated_, [this, history = histories_, writes = writes_, data = model_.take_snapshot()] {
        if (history != histories_ || !running_) return;
        // A replica that was held back receives a later state instead.
        if (time_.now() >= replica_held_until_) return replicated(writes, data);
        replicate();
    });
}

void server::replicated(std::uint64_t writes, server_model::snapshot data) {
    replicated_ = std::max(replicated_, writes);
    replica_ = std::move(data);
    const auto links = links_;  // serving commands may close links
    for (const auto& [id, each] : links) {
        if (each->server_open && each->waits != 0 && replicated_ >= each->wrote) end_wait(*each);
    }
}

// WAIT replicas ms: covers only the earlier writes of this link.
void server::wait(link& to, const words& command) {
    if (member_ != nullptr && member_->is_replica()) {
        return to.down.send("-ERR WAIT cannot be used with replica instances.\r\n");
    }
    to.waits = ++waits_;
    if (!lag_ || replicated_ >= to.wrote) return end_wait(to);
    const milliseconds within(std::stoll(std::string(command[2])));
    time_.after(within, [this, &to, number = to.waits] {
        if (to.waits == number && to.server_open) end_wait(to);
    });
}

void server::end_wait(link& to) {
    to.waits = 0;
    to.down.send(lag_ && replicated_ >= to.wrote ? ":1\r\n" : ":0\r\n");
    serve(to);
}

// CLIENT KILL ID id ADDR address
value server::kill(const words& command) {
    if (!options_.kill_allowed) return value::make_error("NOPERM no permission to run 'client|kill'");
    const auto found = links_.find(std::stoull(std::string(command[3])));
    if (found == links_.end() || found->second->address != command[5]) return value::make_integer(0);
    close(*found->second);
    return value::make_integer(1);
}

value server::run(const std::vector<std::string>& command) {
    model_.set_time(now_us());
    model_.guard_slots(nullptr);
    value answer = model_.execute(command);
    model_.guard_slots(member_);
    return answer;
}

void server::cut_all() {
    while (!links_.empty()) close(*links_.begin()->second);
}

void server::stop() {
    running_ = false;
    cut_all();
}

// At the beginning of a history the replica has all data.
void server::begin_history(const server_model::snapshot& data) {
    replica_ = data;
    replicated_ = writes_;
    ++histories_;
}

void server::begin_run(server_model::snapshot data) {
    begin_history(data);
    model_.restart(std::move(data));
    ++runs_;
}

void server::start(server_model::snapshot data) {
    begin_run(std::move(data));
    running_ = true;
    started_us_ = now_us();
}

void server::fail_over(server_model::snapshot data, nanoseconds clock_ahead) {
    cut_all();
    begin_run(std::move(data));
    stalled_until_ = {};
    begin_with_clock_ahead(clock_ahead);
}

}  // namespace holdfast::sim
