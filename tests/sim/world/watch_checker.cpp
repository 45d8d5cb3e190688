#include "world/watch_checker.hpp"

#include <algorithm>

namespace holdfast::sim {
namespace {

// A message, an answer that was under way already, and the answer to another question; and the script may have to be
// sent again. An expiry is noticed by a timer, whose clock differs from the server's by half a percent of a lease.
constexpr milliseconds told_by_message{100};
// One that nobody tells asks four times a second.
constexpr milliseconds told_by_poll{400};
// A watcher of a Cluster whose question was refused, or went to a member that is gone, asks again.
constexpr milliseconds asks_again{1000};

std::string text_of(server& at, const std::string& key) {
    const holdfast::sim::entry* const there = at.peek(key);
    const auto* const text = there == nullptr ? nullptr : std::get_if<std::string>(&there->data);
    return text == nullptr ? std::string() : *text;
}

std::uint64_t to_token(std::string_view text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

// EVALSHA sha1 keys key ... argument ...
words keys_in(const words& command) {
    return {command.begin() + 3, command.begin() + 3 + std::stoi(std::string(command[2]))};
}

words given_in(const words& command) {
    return {command.begin() + 3 + std::stoi(std::string(command[2])), command.end()};
}

std::string shown(const std::string& holder, std::uint64_t token) {
    return (holder.empty() ? "free" : "held by " + holder) + " token " + std::to_string(token);
}

}  // namespace

watch_checker::state watch_checker::read(server& at, const wire::lock_keys& keys) {
    return read(at, keys.lock(), keys.fence(), keys.notes());
}

watch_checker::state watch_checker::read(server& at, const std::string& lock, const std::string& fence,
                                         const std::string& notes) {
    state out{.holder = text_of(at, lock), .token = to_token(text_of(at, fence)), .note = {}};
    if (!out.holder.empty() && at.peek(notes) != nullptr) out.note = at.run({"HGET", notes, out.holder}).text;
    return out;
}

// For each watcher: until when, its id, the length of its channel, its channel.
watch_checker::entries watch_checker::read_entries(server& at, const std::string& waiters) {
    entries all;
    const std::string text = at.run({"HGET", waiters, "watch"}).text;
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t id = text.find(' ', from) + 1;
        const std::size_t size = text.find(' ', id) + 1;
        const std::size_t channel = text.find(' ', size) + 1;
        if (id == 0 || size == 0 || channel == 0) break;
        const std::size_t length = std::strtoul(text.c_str() + size, nullptr, 10);
        all[text.substr(id, size - 1 - id)] = {std::strtoll(text.c_str() + from, nullptr, 10),
                                               text.substr(channel, length)};
        from = channel + length;
    }
    return all;
}

bool watch_checker::is_same(const wire::watch_answer& known, const state& now) {
    if (known.holder != now.holder || now.holder.empty()) return known.holder == now.holder;
    // The fence of a holder that can be asked back moves with its renewals.
    return known.token == now.token || wire::mark_of(now.holder) != wire::mark::none;
}

std::shared_ptr<watcher> watch_checker::begins(watcher fresh) {
    fresh.since = checks_.now();
    watchers_.push_back(std::make_shared<watcher>(std::move(fresh)));
    return watchers_.back();
}

const std::string& watch_checker::id_of(const watcher& who) {
    static const std::string none;
    const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const auto& one) { return who.has_id(one.first); });
    return found == runs_.end() ? none : found->first;
}

void watch_checker::told(watcher& who, const wire::watch_answer& seen) {
    if (checks_.trace) checks_.trace(who.name + " is told: " + shown(seen.holder, seen.token) + " " + seen.note);
    if (who.over) return checks_.fail(who.name + " was told after it had stopped");
    const bool is_another = !seen.is_free() && !(who.known && who.known->holder == seen.holder);
    if (is_another && seen.token != 0 && seen.token < who.greatest)
        checks_.fail(who.name + " was told of an older grant after a newer one: " + shown(seen.holder, seen.token));
    std::deque<run>& runs = runs_[id_of(who)];
    while (!runs.empty()) {
        const run next = std::move(runs.front());
        runs.pop_front();
        who.greatest = std::max(who.greatest, next.found.token);
        if (next.found.holder != seen.holder || next.found.note != seen.note) continue;
        // A server that took over knows no better, or it has forgotten the token before the hold was over.
        const bool is_raised =
            !is_another && seen.token <= who.greatest && (!who.known || seen.token >= who.known->token);
        if (next.found.token != seen.token && !is_raised) continue;
        who.true_at = next.when;
        who.known = seen;
        return;
    }
    checks_.fail(who.name + " was told what was not so: " + shown(seen.holder, seen.token));
}

void watch_checker::before_script(const words& command) {
    before_ = read_entries(*checks_.watched, std::string(keys_in(command).at(2)));
}

void watch_checker::after_script(const words& command, const value& answer) {
    ++questions_;
    if (checks_.trace) {
        checks_.trace("  watch " + std::string(keys_in(command).at(0)) + " by " + std::string(given_in(command).at(0)) +
                      ": " + answer.to_string());
    }
    if (is_half_run(answer)) checks_.fail("a script was stopped half-way: " + answer.text);
    if (answer.is_error() || answer.items.empty()) return;
    const words keys = keys_in(command);
    const words given = given_in(command);
    server& at = *checks_.watched;
    const state now = read(at, std::string(keys[0]), std::string(keys[3]), std::string(keys[4]));
    const bool is_held = answer.items[0].integer == 1;
    const std::string holder = is_held ? answer.items.at(1).text : "";
    const std::uint64_t token = to_token(answer.items.at(is_held ? 3 : 1).text);
    const std::string note = is_held ? answer.items.at(4).text : "";
    if (holder != now.holder || token != now.token || note != now.note)
        checks_.fail("a watcher was answered what is not so: " + shown(holder, token) + " " + note);
    const std::string given_note = note_given(holder);
    const bool may_have_lost_it = checks_.excused.data_lost || checks_.excused.corrupted ||
                                  checks_.settled_since(std::string(keys[0])) != instant{};
    if (note != given_note && !(note.empty() && may_have_lost_it))
        checks_.fail("a watcher was answered a note that is not that of " + holder + ": " + note);
    runs_[std::string(given[0])].push_back({checks_.now(), now});
    if (!checks_.excused.corrupted) check_entries(given, keys);
}

void watch_checker::check_entries(const words& given, const words& keys) {
    server& at = *checks_.watched;
    const std::string id(given[0]);
    const entries after = read_entries(at, std::string(keys[2]));
    for (const auto& [other, was] : before_) {
        const auto is = after.find(other);
        if (other == id || was.until_us <= at.now_us()) continue;
        if (is == after.end() || is->second.until_us != was.until_us || is->second.channel != was.channel)
            checks_.fail(id + " watches, and so " + other + " does not any more");
    }
    const auto mine = after.find(id);
    if (given[1].empty() || given[1] == "-") {
        if (mine != after.end()) checks_.fail(id + " is to be told of changes, and does not want it");
        return;
    }
    const std::int64_t lasts_ms = to_ms(given[2]).count();
    // It comes again before half of its time is over.
    if (mine == after.end() || mine->second.channel != given[1] || mine->second.until_us < at.now_us() + lasts_ms * 500)
        return checks_.fail(id + " is not to be told of changes for as long as it asked");
    const std::int64_t left = at.run({"PTTL", std::string(keys[2])}).integer;
    if (left * 1000 < mine->second.until_us - at.now_us())
        checks_.fail("the watchers of " + std::string(keys[0]) + " end before their time");
}

void watch_checker::look() {
    std::map<std::string, period*> looked_at;
    for (const auto& who : watchers_) {
        if (who->over) continue;
        const std::string& lock = who->keys->lock();
        period& present = periods_[lock];
        if (looked_at.emplace(lock, &present).second) {
            server& home = checks_.server_of(lock);
            const bool was_known = std::exchange(present.is_known, home.accepts());
            if (!present.is_known) continue;
            state now = read(home, *who->keys);
            wire::watch_answer was{.holder = present.now.holder, .left = {}, .token = present.now.token, .note = {}};
            if (!was_known || !is_same(was, now)) present.since = checks_.now();
            present.now = std::move(now);
        }
        if (present.is_known) check_prompt(*who, present);
    }
    std::erase_if(watchers_, [](const auto& one) { return one->over; });
}

void watch_checker::check_prompt(const watcher& who, const period& present) {
    if (who.known && is_same(*who.known, present.now)) return;
    const auto& excused = checks_.excused;
    if (excused.jumped || excused.data_lost || excused.corrupted) return;
    const std::string& holder = present.now.holder;
    if (!holder.empty() && !wire::is_ours(holder)) return;  // another program announces nothing
    const bool knows_foreign = who.known && !who.known->is_free() && !wire::is_ours(who.known->holder);
    const milliseconds allowed = checks_.polls(who.client) || knows_foreign ? told_by_poll : told_by_message;
    const instant settled = checks_.settled_since(who.keys->lock());
    if (settled == never) return;
    const instant from =
        std::max({present.since, who.since, who.true_at, settled == instant{} ? settled : settled + asks_again});
    const instant calm_from = is_cluster ? from - asks_again : from;
    if (checks_.now() - from <= allowed || !checks_.calm_since(who.client, calm_from)) return;
    checks_.fail(who.name + " was not told in time that " + who.keys->lock() + " is " +
                 shown(holder, present.now.token));
}

bool watch_checker::all_know() {
    return std::ranges::all_of(watchers_, [&](const auto& who) {
        if (who->over) return true;
        return who->known && is_same(*who->known, read(checks_.server_of(who->keys->lock()), *who->keys));
    });
}

}  // namespace holdfast::sim
