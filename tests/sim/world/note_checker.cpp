#include "world/note_checker.hpp"

#include <variant>

namespace holdfast::sim {
namespace {

struct call {
    bool acquires = false;
    bool releases = false;
    bool renews = false;
    std::string lock;
    std::string id;
    std::string note;
};

// EVALSHA sha1 keys lock ... id ...
call read_call(std::string_view script, const words& command) {
    call out;
    const bool is_rw = script.starts_with("rw/");
    const auto given = command.begin() + 3 + std::stoi(std::string(command[2]));
    const auto at = [&](std::ptrdiff_t which) {
        return command.end() - given > which ? std::string(given[which]) : std::string();
    };
    out.lock = command[3];
    out.id = at(0);
    out.acquires = script.ends_with("/acquire");
    out.releases = script.ends_with("/release") && (!is_rw || at(4).empty());
    out.renews = script.ends_with("/renew");
    if (out.acquires) out.note = at(is_rw ? 14 : 11);
    return out;
}

std::string text_at(const value& answer, std::size_t which) {
    return answer.items.size() > which ? answer.items[which].text : std::string();
}

}  // namespace

note_checker::notes note_checker::read(const std::string& lock) const {
    notes all;
    const value fields = checks_.watched->run({"HGETALL", lock + ":notes"});
    for (std::size_t i = 0; i + 1 < fields.items.size(); i += 2) all[fields.items[i].text] = fields.items[i + 1].text;
    return all;
}

bool note_checker::waits(const std::string& lock, const std::string& id) const {
    return checks_.watched->run({"HEXISTS", lock + ":waiters", id}).integer == 1;
}

bool note_checker::holds(const std::string& lock, const std::string& id) const {
    if (checks_.watched->run({"TYPE", lock}).text == "string") return checks_.watched->run({"GET", lock}).text == id;
    const value deadline = checks_.watched->run({"ZSCORE", lock + ":leases", id});
    const auto now_ms = static_cast<double>(checks_.watched->now_us() / 1000);
    return deadline.type != value::kind::nil && std::strtod(deadline.text.c_str(), nullptr) > now_ms;
}

void note_checker::note_given(std::string_view script, const words& command) {
    const call asked = read_call(script, command);
    if (!asked.note.empty()) given_[asked.id] = asked.note;
}

void note_checker::before_script(std::string_view script, const words& command) {
    const call asked = read_call(script, command);
    before_ = read(asked.lock);
}

void note_checker::after_script(std::string_view script, const words& command, const value& answer) {
    const call asked = read_call(script, command);
    if (answer.is_error() || answer.items.empty() || answer.items[0].type != value::kind::integer) return;
    const std::int64_t code = answer.items[0].integer;
    const notes after = read(asked.lock);
    const auto has = [](const notes& all, const std::string& id) { return all.contains(id); };

    for (const auto& [id, note] : after) {
        const auto given = given_.find(id);
        if (given == given_.end() || given->second != note) checks_.fail("a note that nobody gave: " + id);
    }
    for (const auto& [id, note] : before_) {
        if (id != asked.id && !has(after, id) && (holds(asked.lock, id) || waits(asked.lock, id)))
            checks_.fail(asked.id + " took the note of " + id);
    }
    if (asked.acquires && (code == 0 || code == 2)) check_told(text_at(answer, 2), text_at(answer, code == 0 ? 5 : 9));
    const std::int64_t left = checks_.watched->run({"PTTL", asked.lock + ":notes"}).integer;
    if (!after.empty() && left < 0) checks_.fail("the notes do not expire");
    const bool is_noted = given_.contains(asked.id);
    if (!is_noted) return;
    if (asked.acquires && !asked.note.empty() && code > 0) {
        if (!has(after, asked.id)) checks_.fail("the note of " + asked.id + " is not there");
    }
    // While a slot moves, a renewal names the lock alone.
    const bool was_renewed = asked.renews && command[2] != "1" && code == 1 && has(after, asked.id);
    if ((asked.acquires && code == 1) || was_renewed) {
        const std::int64_t lease = checks_.watched->run({"PTTL", asked.lock}).integer;
        const bool is_alone = checks_.watched->run({"TYPE", asked.lock}).text == "string";
        if (is_alone && left < lease) checks_.fail("the note of " + asked.id + " ends before its lease");
    }
    if (asked.releases && (code == 1 || code == 0) && has(after, asked.id) && !waits(asked.lock, asked.id))
        checks_.fail("the note of " + asked.id + " outlived its grant");
}

void note_checker::check_told(const std::string& holder, const std::string& note) {
    if (note.empty()) return;
    const auto given = given_.find(holder);
    if (given == given_.end() || given->second != note) checks_.fail("the note that was told is not that of " + holder);
}

void note_checker::told(const std::string& holder, const std::string& note) {
    check_told(holder, note);
}

}  // namespace holdfast::sim
