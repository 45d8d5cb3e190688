#include "hostile/hostile_lock.hpp"

#include <array>
#include <cstdlib>
#include <span>
#include <utility>

#include "redis/session/multiplexer.hpp"
#include "wire/hold_id.hpp"
#include "wire/look.hpp"
#include "wire/mutex/watch.hpp"
#include "wire/semaphore/semaphore_requests.hpp"
#include "wire/together.hpp"
#include "world/random_stream.hpp"
#include "world/wire.hpp"

namespace holdfast::sim {
namespace {

using std::string;
using std::string_view;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using namespace std::chrono_literals;
using fuzz::choices;

constexpr milliseconds forever = 48h;  // longer than all leases and retentions
constexpr double latest_end_ms = static_cast<double>((microseconds(hostile_lock::begin_us) + forever) / 1ms);
constexpr milliseconds lease = 30s;
constexpr std::size_t most_calls = 8;

constexpr std::array<string_view, 24> numbers{"0",
                                              "1",
                                              "2",
                                              "-1",
                                              "3",
                                              "30000",
                                              "1000",
                                              "007",
                                              "1.5",
                                              "1e15",
                                              "1e308",
                                              "inf",
                                              "-inf",
                                              "nan",
                                              "",
                                              " 1",
                                              "0x10",
                                              "9007199254740991",
                                              "9007199254740992",
                                              "9223372036854775807",
                                              "-9223372036854775808",
                                              "123456789012345678901234567890",
                                              "1800000000000000",
                                              "1799999999999999"};

constexpr std::array<string_view, 13> fields{"mode",  "rcount",   "writer",    "wcount",
                                             "limit", "declared", "version",   "foreign",
                                             "kept",  "r:",       "r:another", "18000000-1-1-1-1:7",
                                             "watch"};

constexpr std::array<string_view, 14> words{"r", "w", "u",    "b",    "read", "write",     "lost",
                                            "-", "",  "none", "both", "\n",   "hf:wake:x", "hf:wake:{l}:x"};

// A command that is only written down.
class silent_command final : public redis::command {
    void on_reply(const redis::reply_view&, instant) override {}
    void on_failure(const failure&, instant) override {}
};

// The words of a script call, by the text of the script.
call_words words_of(silent_command& request) {
    redis::multiplexer wires;
    wires.link_up();
    wires.open_gate();
    wires.submit(request);
    command_reader reader;
    reader.add(wires.begin_write(instant{}));
    wires.end_write();
    const std::vector<string_view>& found = reader.next();
    call_words result(found.begin(), found.end());
    wires.link_down({errc::unreachable, "the end"}, instant{});
    if (request.source() != nullptr) {
        result[0] = "EVAL";
        result[1] = request.source()->text;
    }
    return result;
}

bool is_clear(const value& reply) {
    if (!reply.is_error()) return true;
    return reply.text.starts_with("WRONGTYPE") || reply.text.starts_with("ERR holdfast");
}

std::string number_text(const value& one) {
    return one.type == value::kind::integer ? std::to_string(one.integer) : one.text;
}

string quoted(const call_words& command) {
    std::string out;
    for (const string& word : command) {
        // Scripts have names enough in their first line.
        out += (word.size() > 300 ? word.substr(0, word.find('\n')) : in_quotes(word)) + ' ';
    }
    return out;
}

}  // namespace

hostile_lock::hostile_lock(choices choose) {
    constexpr std::array kinds{wire::lock_kind::mutex, wire::lock_kind::read_write, wire::lock_kind::semaphore};
    const std::size_t form = choose.below(5);
    kind_ = kinds[form % 3];
    const auto naming = form < 3 ? wire::key_naming::tagged : wire::key_naming::raw;
    keys_ = wire::make_keys(wire::lock_name("l"), naming, "hf:");
    other_ = wire::make_keys(wire::lock_name("m"), wire::key_naming::tagged, "hf:");
    random_stream draw(5);
    noted_id_ = wire::hold_id(wire::first_noted + 1, draw).text(wire::client_id(draw));
    for (std::uint64_t n = 1; n <= 2; ++n) {
        const wire::client_id client(draw);
        const wire::hold_id id(n, draw);
        ids_.push_back(id.text(client));
        ids_.push_back(id.text(client, wire::mark::common_channel));
        ids_.push_back(id.text(client, wire::mark::sharded_channel));
    }
    ids_.push_back(noted_id_);
    ids_.insert(ids_.end(), {"another program", "hf_", "hf_abc.1.def", "", "r:x w", string(100, 'x')});
    for (const string& key : {keys_.lock(), keys_.queue(), keys_.waiters(), keys_.fence(), keys_.leases(),
                              keys_.grants(), keys_.gap(), keys_.notes(), other_.lock()}) {
        draw_key(choose, key);
    }
    while (!choose.are_over() && steps_.size() < most_calls) {
        constexpr std::array<milliseconds, 6> pauses{0ms, 0ms, 1ms, 1s, 31s, 2h};
        const milliseconds pause = pauses[choose.below(pauses.size())];
        steps_.push_back({pause, call_of(choose)});
    }
}

string hostile_lock::id_of(choices& choose) const {
    return ids_[choose.below(ids_.size())];
}

string hostile_lock::value_of(choices& choose) const {
    const auto number = [&] { return string(choose.of(numbers)); };
    const auto word = [&] { return string(choose.of(words)); };
    switch (choose.below(8)) {
        case 0:
            return number();
        case 6: {  // like watchers
            string out;
            for (std::size_t i = choose.below(3); i < 3; ++i) {
                out += choose.one_in(2) ? "1800000060000000" : number();
                out += " " + id_of(choose) + " ";
                out += choose.one_in(2) ? "9 hf:wake:x" : number() + " " + word();
            }
            return out;
        }
        case 1:
            return id_of(choose);
        case 2: {  // like a waiter's entry
            string out = number();
            for (int i = 0; i < 3; ++i) out += " " + number();
            out += " " + word();
            return out + " " + word();
        }
        case 3: {  // like a grant
            string out = choose.one_in(2) ? word() : number();
            out += " " + number();
            return choose.one_in(4) ? out + " lost" : out;
        }
        case 4: {  // like a gap
            string out = number();
            out += " " + number();
            return out + " " + number();
        }
        case 5:
            return word();
        default:
            return choose.text(16);
    }
}

string hostile_lock::field_of(choices& choose) const {
    switch (choose.below(4)) {
        case 0:
            return string(choose.of(fields));
        case 1:
            return "r:" + id_of(choose);
        case 2:
            return id_of(choose);
        default:
            return choose.text(8);
    }
}

string hostile_lock::score_of(choices& choose) const {
    return string(choose.of(numbers));
}

void hostile_lock::draw_key(choices& choose, const string& key) {
    const std::size_t type = choose.below(8);
    const std::size_t count = 1 + choose.below(4);
    switch (type) {
        case 1:
            contents_.push_back({"SET", key, value_of(choose)});
            break;
        case 2:
        case 3:
            for (std::size_t i = 0; i < count; ++i) {
                string field = field_of(choose);
                contents_.push_back({"HSET", key, std::move(field), value_of(choose)});
            }
            break;
        case 4:
        case 5:
            for (std::size_t i = 0; i < count; ++i) {
                string score = score_of(choose);
                if (key == keys_.leases() && std::strtod(score.c_str(), nullptr) > latest_end_ms)
                    has_endless_lease_ = true;
                contents_.push_back(
                    {"ZADD", key, std::move(score), choose.one_in(3) ? value_of(choose) : id_of(choose)});
            }
            break;
        case 6:
            contents_.push_back({"SADD", key, value_of(choose)});
            break;
        default:
            return;
    }
    constexpr std::array<string_view, 4> expiries{"", "1", "20000", "80000000"};
    if (const string_view expiry = choose.of(expiries); !expiry.empty())
        contents_.push_back({"PEXPIRE", key, string(expiry)});
}

template <class Request>
call_words hostile_lock::call_with(const Request& request, choices& choose) const {
    wire::lock_terms about = terms();
    if (choose.one_in(4)) about.proposal = static_cast<std::uint64_t>(begin_us + choose.byte());
    about.limit = 1 + static_cast<std::uint32_t>(choose.below(3));
    silent_command out;
    wire::write(out, about, request);
    return words_of(out);
}

// As a client calls them: the arguments have the right form.
call_words hostile_lock::call_of(choices& choose) const {
    constexpr std::array<std::uint64_t, 6> tokens{0, 1, 42, 1'800'000'000'000'000, (std::uint64_t{1} << 53) - 1, 7};
    const wire::kind& kind = wire::kind_of(kind_);
    const string id = ids_[choose.below(6)];
    const std::uint64_t token = tokens[choose.below(tokens.size())];
    const std::uint64_t to = std::max(token + 1, tokens[choose.below(tokens.size())]);
    switch (choose.below(13)) {
        case 11: {
            if (kind_ != wire::lock_kind::mutex) break;
            constexpr std::array<string_view, 4> channels{"", wire::by_polls, "hf:wake:x", "hf:wake:{l}:x"};
            silent_command watch;
            wire::write_watch(watch, keys_, {.id = id, .channel = choose.of(channels), .lasts = lease});
            return words_of(watch);
        }
        case 1:
            return call_with(wire::release_request{.id = id, .token = token, .yield_after = 50ms}, choose);
        case 2:
            return call_with(wire::renew_request{.id = id, .lease = lease, .delay = choose.one_in(3) ? 1s : 0s},
                             choose);
        case 3:
            return call_with(wire::confirm_request{.id = id, .token = token}, choose);
        case 4:
            if (kind_ == wire::lock_kind::semaphore) break;
            return call_with(wire::renew_block_request{.id = id, .lease = lease, .ceiling = token}, choose);
        case 5:
            if (kind_ == wire::lock_kind::semaphore) break;
            return call_with(wire::raise_request{.id = id, .token = std::max<std::uint64_t>(token, 1), .to = to},
                             choose);
        case 6:
            if (kind.can_release_alone()) return call_with(wire::release_alone_request{id}, choose);
            if (kind.can_renew_alone()) return call_with(wire::renew_alone_request{id, lease}, choose);
            break;
        case 7:
            if (kind.has_shared_mode()) return call_with(wire::cancel_request{id}, choose);
            break;
        case 8: {
            silent_command look;
            wire::write_look(look, keys_);
            return words_of(look);
        }
        case 9: {
            if (kind_ != wire::lock_kind::semaphore) break;
            silent_command resize;
            wire::write_resize(resize, terms(), {.new_version = "v", .new_limit = 3, .replaces = ""});
            return words_of(resize);
        }
        case 10: {
            if (kind_ != wire::lock_kind::mutex || keys_.is_raw()) break;
            silent_command both;
            const std::array parts{wire::acquire_part{keys_, id, lease, token},
                                   wire::acquire_part{other_, id, lease, 0}};
            const std::array left{wire::release_part{keys_, id, token}, wire::release_part{other_, id, token}};
            if (choose.one_in(2)) {
                wire::write_acquire_all(both, retention, parts);
            } else {
                wire::write_release_all(both, left);
            }
            return words_of(both);
        }
        default:
            break;
    }
    wire::acquire_request wanted{};
    wanted.id = id;
    wanted.lease = lease;
    wanted.token_floor = token;
    const std::size_t how = choose.byte();
    if ((how & 1U) != 0 && kind.has_shared_mode()) wanted.wants = wire::wish::read;
    if ((how & 2U) != 0) wanted.channel = (how & 4U) != 0 ? wire::by_polls : string_view("hf:wake:0123456789abcdef");
    if ((how & 8U) != 0) wanted.ticket = "1800000000000000";
    if ((how & 16U) != 0) wanted.gives_way = token;
    if ((how & 96U) == 96U && kind.has_shared_mode()) {
        wanted.wants = wire::wish::upgrade;
        wanted.upgrading = std::max<std::uint64_t>(token, 1);
    }
    if ((how & 128U) != 0 && kind_ != wire::lock_kind::semaphore && !keys_.is_raw()) {
        wanted.id = noted_id_;
        wanted.note = choose.of(words);
        wanted.asks_for_note = true;
    }
    wanted.poll_interval = 1s;
    wanted.queue_retention = 60s;
    return call_with(wanted, choose);
}

call_words hostile_lock::fresh_acquire(string_view id, string_view ticket) const {
    silent_command out;
    wire::write(out, terms(),
                wire::acquire_request{.id = id,
                                      .lease = lease,
                                      .channel = wire::by_polls,
                                      .ticket = ticket,
                                      .poll_interval = 1s,
                                      .queue_retention = 60s});
    return words_of(out);
}

void hostile_lock::fill(hostile_server& on) const {
    on.run({"FLUSHALL"});
    for (const call_words& each : contents_) on.run(each);  // some are refused, and do nothing
}

// Twice, with a release in between.
hostile_lock::ending hostile_lock::end_of(hostile_server& on, std::string& what) const {
    on.pass(forever);
    random_stream draw(6);
    const wire::client_id client(draw);
    for (std::uint64_t turn = 1; turn <= 2; ++turn) {
        const string id = wire::hold_id(turn, draw).text(client);
        string ticket;
        string token;
        for (int polls = 0; polls < 6 && token.empty(); ++polls) {
            const value reply = on.run(fresh_acquire(id, ticket));
            what += "  " + reply.to_string() + "\n";
            if (reply.is_error()) return ending::refused_by_an_error;
            if (reply.items.size() < 2) return ending::blocked;
            if (reply.items[0].integer == 1) token = number_text(reply.items[1]);
            if (reply.items[0].integer == 2 && reply.items.size() > 3) ticket = reply.items[3].text;
            on.pass(1100ms);
        }
        if (token.empty()) return ending::blocked;
        silent_command out;
        wire::write(out, terms(), wire::release_request{.id = id, .token = std::stoull(token)});
        const value released = on.run(words_of(out));
        what += "  " + released.to_string() + "\n";
        if (released.is_error() || released.items.empty() || released.items[0].integer != 1) return ending::blocked;
        on.pass(1100ms);
    }
    return ending::free;
}

std::string hostile_lock::play(hostile_server& on) const {
    std::string told;
    fill(on);
    const ending without = end_of(on, told);
    told += "with scripts:\n";
    fill(on);
    for (const step& each : steps_) {
        on.pass(each.pause);
        const value reply = on.run(each.call);
        told += "  " + reply.to_string() + "\n";
        if (!is_clear(reply)) return "an unclear error: " + reply.to_string() + "\n" + told;
    }
    const ending with = end_of(on, told);
    if (without == ending::free && with != ending::free && !has_endless_lease_)
        return "scripts have blocked the lock\n" + told;
    return {};
}

std::string hostile_lock::describe() const {
    std::string out;
    for (const call_words& each : contents_) out += quoted(each) + "\n";
    for (const step& each : steps_) out += std::to_string(each.pause.count()) + " ms, " + quoted(each.call) + "\n";
    return out;
}

}  // namespace holdfast::sim
