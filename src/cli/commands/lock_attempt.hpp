// An acquisition as the words of `run` and `lock` describe it: of which lock, on which servers, for how long, and what
// people see meanwhile.
#pragma once

#include "cli/commands/run_options.hpp"
#include "cli/run/held_list.hpp"
#include "cli/run/run_lock.hpp"
#include "cli/terminal/signals.hpp"

#include <holdfast/client.hpp>

#include <string>

namespace holdfast::cli {

// Lists of holders show the program's name: "holdfast:rsync". No more of the command: that is for the note, which hides
// secrets. Before the client is made.
void show_program(const std::string& program);

class lock_attempt {
public:
    // Throws trouble or holdfast::error if the options make no sense. They must outlive this.
    explicit lock_attempt(const run_options& options);

    // To be called first. Starts the local server if that is the one.
    void choose_servers();
    lock_location where() const { return {servers_.identity, lock_.keys.lock()}; }

    // Whether the hold of a process above this one is enough; never of a semaphore, where each run takes permits.
    // Waiting for more than it could never end, so that throws trouble: the holder waits for us.
    bool may_borrow(const held_lock& held) const;

    // A client that hears `holdfast release`, also where nobody waits for the lock. After the signals are blocked,
    // which its threads must not get.
    client connect() const;
    // Waits as long as the options say. With a signal that asks to end, nothing of it is left on the servers.
    waited wait(client& link, signal_inbox& signals) const;
    // Says why it was not acquired, unless it is to be quiet; returns what to exit with.
    int refused(const client& link) const;

private:
    server_set eyes(const client& link) const;
    std::string advice_on(const client& link) const;

    const run_options& options_;
    lock_ref lock_;
    side side_;
    slots slots_;
    client_options link_options_;
    shared_mutex_options lock_options_;
    std::chrono::milliseconds delay_;
    patience limit_;
    server_choice servers_;
};

}  // namespace holdfast::cli
