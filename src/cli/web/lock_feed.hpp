// What browsers are sent: first everything, then what has changed since. All of them get the same texts, made once.
//
// A row has instants, not durations, so that a lock on which nothing happens is not sent again; the page counts by
// itself. At most `most_rows` rows of `most_bytes` together are sent, the most contended ones. Names, notes and what
// clients say of themselves come from anybody who may write to the server; in rows the longer ones are cut.
//
// Knows no browser and no server: looks in, texts out.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/web/lock_history.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

using shared_text = std::shared_ptr<const std::string>;

// An event as the stream carries it.
shared_text stream_event(std::string_view name, const json& data);

// A look at all servers, or why there is none.
struct web_look {
    std::vector<lock_state> locks = {};
    std::vector<silence> silent = {};
    std::size_t servers_up = 1;
    std::size_t members_silent = 0;
    microseconds took{0};
    std::string trouble = {};  // if not empty: what kept it from looking
};

class lock_feed {
public:
    static constexpr std::size_t most_rows = 5000;
    static constexpr std::size_t most_bytes = 3 * 1024 * 1024;
    static constexpr std::size_t most_text = 256;     // of a note and the like, in a row
    static constexpr std::size_t most_parties = 200;  // holders, and waiters, of the page of a lock

    // `about` is told to every browser at the beginning.
    explicit lock_feed(json about) : about_(std::move(about)) {}

    // Returns the event to send; null if nothing has changed.
    shared_text add(web_look look);
    // For a browser that begins to listen.
    shared_text everything() const;
    // The page of a lock, by the key of its row; null if there is no such lock.
    json details_of(const std::string& key) const;

    const web_look& latest() const noexcept { return latest_; }
    bool has_looked() const noexcept { return has_looked_; }
    // Null if there is no such lock.
    const lock_state* find(const std::string& key) const;

private:
    json row_of(const lock_state& lock, const std::string& key) const;
    json silent_servers() const;
    std::int64_t now_ms() const;

    json about_;
    lock_history history_;
    web_look latest_;
    std::map<std::string, std::size_t> index_;  // of latest_.locks, by key
    std::map<std::string, json> rows_;          // by key
    json silent_told_ = json::array();
    std::size_t hidden_ = 0;  // locks beyond the rows that are sent
    microseconds now_{0};
    bool has_looked_ = false;
};

}  // namespace holdfast::cli
