// A lock that a shell holds without wrapping a command: `holdfast lock` and `holdfast unlock`.
//
// A process in the background, the holder, keeps the lock for the shell. Others find it by an abstract socket whose
// name says user, lock and shell (its pid namespace, pid and start time): nothing is left behind on disk, and the name
// is free when the holder has ended. They ask it in one line and are answered in one line:
//
//     tell      TOKEN HOLD-ID
//     release   STATUS TEXT     STATUS is what `holdfast unlock` exits with
//
// Anybody may connect to an abstract socket, so both sides check that the other one is a process of the same user.
#pragma once

#include "cli/run/held_list.hpp"
#include "cli/terminal/system.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Where the holder of a shell is found once it listens. Empty: that shell has a holder for this lock already.
unique_fd socket_for_shell(pid_t shell, const lock_location& where);

// The next question, if one has come; its asker, to be answered. Never blocks for long.
struct asker {
    unique_fd link;
    std::string question;

    void answer(const std::string& text) noexcept;
};
std::optional<asker> next_asker(int listener);

// False for the first process of a machine or container, which takes in the children of those that have ended, unless
// it began this session: then it is the script of a container.
bool may_be_shell(pid_t process);

// This process's parent, its parent, and so on, as far as they may be shells.
std::vector<pid_t> ancestors();

// The answer of the holder that one of these shells has, of the first that has one. Nothing if none has.
std::optional<std::string> ask_holder(const std::vector<pid_t>& shells, const lock_location& where,
                                      std::string_view question);

// The hold of a shell above this process; nothing if there is none.
std::optional<held_lock> hold_of_shell_above(const lock_location& where);

}  // namespace holdfast::cli
