// Checks the notes of mutexes and read-write locks: every script call that knows them, with the notes before and after.
//
// Rules:
//   - A note that is told belongs to the grant that is told, by a script to its caller, and by the engine to its user.
//   - Who holds or waits by an acquisition with a note has it there afterwards, for as long as its lease.
//   - A renewal keeps the note of its hold as long as the lease.
//   - A release that ends a hold or a wait leaves no note of it.
//   - No script takes the note of another that holds or waits, or makes one.
//   - The key of the notes expires.
#pragma once

#include <map>
#include <set>
#include <string>

#include "world/checks.hpp"

namespace holdfast::sim {

class note_checker {
public:
    explicit note_checker(checks& all) : checks_(all) {}

    /// Of every server.
    void note_given(std::string_view script, const words& command);
    void before_script(std::string_view script, const words& command);
    void after_script(std::string_view script, const words& command, const value& answer);
    /// The note with which this id acquired; empty: it had none.
    std::string note_of(const std::string& id) const {
        const auto found = given_.find(id);
        return found == given_.end() ? std::string() : found->second;
    }
    /// A user was refused, and told of that holder with that note.
    void told(const std::string& holder, const std::string& note);

private:
    using notes = std::map<std::string, std::string, std::less<>>;

    notes read(const std::string& lock) const;
    bool waits(const std::string& lock, const std::string& id) const;
    bool holds(const std::string& lock, const std::string& id) const;
    void check_told(const std::string& holder, const std::string& note);

    checks& checks_;
    notes given_;  // by hold id; an id has one note for ever
    notes before_;
};

}  // namespace holdfast::sim
