// Watches over the command while it runs: passes signals on, follows it into the background and back, and
// ends it before the lock could be somebody else's.
//
//     running --lost--> ending (TERM sent) --grace over, or validity about to end--> KILL
//        |                 |
//        +--command ended--+--> exit status
//
// Two clocks end a lost hold's command: this loop, which may ask kindly first, and the guard, which does not
// need us. The loop reads the hold's validity often enough (every half lease) to keep the guard told.
//
// Invariants:
//  (1) KILL is sent before the validity, as last read, ends; the guard's deadline lies between the two.
//  (2) A stopped command is continued only after the server has confirmed the hold.
#pragma once

#include "cli/run/guard.hpp"
#include "cli/terminal/signals.hpp"
#include "cli/terminal/terminal.hpp"

#include <holdfast/lease.hpp>

#include <chrono>
#include <string>

namespace holdfast::cli {

enum class on_lost { kill, warn };

struct supervision {
    std::string name;  // of the lock, for messages
    std::chrono::milliseconds lease;
    std::chrono::milliseconds grace;
    on_lost reaction;
};

// Why that hold is over, for people; `lease` is that of the lock.
std::string reason_of_loss(const holdfast::lease& hold, std::chrono::milliseconds lease);

class supervisor {
public:
    supervisor(supervision terms, holdfast::lease& hold, signal_inbox& signals, terminal& tty, guard& watcher);

    // Returns what holdfast exits with when the command, the leader of this group, has ended.
    int watch(pid_t group);

    // The terminal's Ctrl-C ended the command.
    bool interrupted_at_terminal() const noexcept { return interrupted_at_terminal_; }

private:
    void wait_for_event();
    void handle(int signal);
    void read_status();
    void stopped(int by);
    void resume();
    bool hold_is_confirmed();
    std::chrono::milliseconds read_validity();
    void check_hold();
    void lose(const std::string& why);
    void kill_if_due();
    void clear_group();
    int exit_status() const;
    instant next_look() const;
    void signal_group(int signal) const noexcept;

    supervision terms_;
    holdfast::lease& hold_;
    signal_inbox& signals_;
    terminal& tty_;
    guard& guard_;
    event lost_event_;
    pid_t group_ = 0;
    bool ended_ = false;
    bool stopped_ = false;
    bool lost_ = false;
    bool killed_ = false;
    bool interrupted_at_terminal_ = false;
    int status_ = 0;           // as waitpid gives it
    instant valid_until_{};    // as last read
    instant kill_at_ = never;  // once lost
};

}  // namespace holdfast::cli
