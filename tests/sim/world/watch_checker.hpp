// Checks the watchers of mutexes (mutex/watch): what the script answers and writes down, and what users are told.
//
// Rules:
//   - What mutex/watch answers is so at the server at that moment; the note is that of the holder's acquisition.
//   - Afterwards its watcher is written down for as long as it asked, with an expiry, or no longer if it leaves; and
//     those that were written down before still are.
//   - What a user is told was true at the server, later than what it was told before. No grant is told after one with a
//     greater token, whatever becomes of links and servers.
//   - A watcher that has had no trouble knows soon of every change, also of a hold that has expired.
//   - In the end every watcher knows how things are.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wire/keys.hpp"
#include "wire/mutex/watch.hpp"
#include "world/checks.hpp"

namespace holdfast::sim {

/// A user that watches, from its beginning until it stops.
struct watcher {
    std::string name;
    std::string client;
    std::shared_ptr<const wire::lock_keys> keys;
    std::function<bool(std::string_view id)> has_id = {};
    instant since{};
    bool over = false;
    std::optional<wire::watch_answer> known = {};
    std::uint64_t greatest = 0;  // of the tokens that it was answered
    instant true_at{};           // when the server was like that
};

class watch_checker {
public:
    explicit watch_checker(checks& all) : checks_(all) {}

    std::shared_ptr<watcher> begins(watcher fresh);
    void told(watcher& who, const wire::watch_answer& seen);
    /// By id. The holders' notes, as they acquired with them.
    std::function<std::string(const std::string& holder)> note_given;

    /// In a Cluster a watcher whose question failed, because the member is gone, may ask again only after a while.
    bool is_cluster = false;

    void before_script(const words& command);
    void after_script(const words& command, const value& answer);
    /// Compares what all watchers know with the servers. To be called often.
    void look();
    bool all_know();
    std::uint64_t questions() const { return questions_; }

private:
    struct state {
        std::string holder;  // empty: free
        std::uint64_t token = 0;
        std::string note;
    };
    struct run {
        instant when;
        state found;
    };
    struct entry {
        std::int64_t until_us = 0;
        std::string channel;
    };
    using entries = std::map<std::string, entry, std::less<>>;
    // Since when a lock has been like that.
    struct period {
        state now;
        instant since{};
        bool is_known = false;
    };

    static state read(server& at, const wire::lock_keys& keys);
    static state read(server& at, const std::string& lock, const std::string& fence, const std::string& notes);
    static entries read_entries(server& at, const std::string& waiters);
    static bool is_same(const wire::watch_answer& known, const state& now);
    const std::string& id_of(const watcher& who);
    void check_entries(const words& given, const words& keys);
    void check_prompt(const watcher& who, const period& present);

    checks& checks_;
    std::vector<std::shared_ptr<watcher>> watchers_;
    std::map<std::string, std::deque<run>, std::less<>> runs_;  // by the watcher's id
    std::map<std::string, period> periods_;                     // by lock
    entries before_;
    std::uint64_t questions_ = 0;
};

}  // namespace holdfast::sim
