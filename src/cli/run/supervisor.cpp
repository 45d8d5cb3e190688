#include "cli/run/supervisor.hpp"

#include "api/operations/hold_face.hpp"
#include "base/assert.hpp"
#include "base/boot_clock.hpp"
#include "redis/url/duration.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <stop_token>
#include <thread>
#include <utility>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// KILL is sent this long before validity ends: it must have taken effect by then, on a busy machine too.
milliseconds kill_margin(milliseconds lease) {
    return std::clamp<milliseconds>(lease / 25, 1ms, 1s);
}

}  // namespace

// A hold that is lost although its validity goes on was asked for by an operator.
std::string reason_of_loss(const holdfast::lease& hold, milliseconds lease) {
    const auto left = api::lease_access::valid_until(hold) - boot_now();
    const errc why = hold.lost().stop_requested() ? api::lease_access::why_lost(hold) : errc::lost;
    if (why == errc::not_held) {
        return "the server no longer has this hold: its data was lost, or the key was deleted, or somebody ended it by "
               "holdfast release --force";
    }
    if (why == errc::held_by_other) return "the server lost this hold and granted the lock to another holder";
    // The client gives up a hold that nobody has confirmed when a tenth of the lease is left.
    if (left > lease / 8) return "somebody asked for it by holdfast release --force";
    return fmt::format("no server has confirmed it within its lease of {}", redis::format_duration(lease));
}

supervisor::supervisor(supervision terms, holdfast::lease& hold, signal_inbox& signals, terminal& tty, guard& watcher)
    : terms_(std::move(terms)), hold_(hold), signals_(signals), tty_(tty), guard_(watcher) {
    read_validity();  // before there is a command, so that the guard never guards one without a deadline
}

int supervisor::watch(pid_t group) {
    group_ = group;
    const std::stop_callback on_loss(hold_.lost(), [this] { lost_event_.raise(); });
    read_status();
    while (!ended_) {
        check_hold();
        kill_if_due();
        wait_for_event();
        while (const auto signal = signals_.take()) handle(*signal);
        read_status();
    }
    if (lost_ && terms_.reaction == on_lost::kill) clear_group();
    interrupted_at_terminal_ = tty_.is_given_away() && WIFSIGNALED(status_) && WTERMSIG(status_) == SIGINT;
    tty_.take_back();
    const bool guard_killed = guard_.finish() == guard::verdict::killed;
    if (guard_killed && !lost_) {
        lost_ = true;
        tell(fmt::format("lost the lock '{}' while holdfast was not running; the command was killed", terms_.name));
    }
    return exit_status();
}

int supervisor::exit_status() const {
    const int commands_own = WIFSIGNALED(status_) ? killed_by_signal + WTERMSIG(status_) : WEXITSTATUS(status_);
    if (!lost_) return commands_own;
    // A command that went on without the lock has not done well, whatever it says; its own trouble says more.
    return terms_.reaction == on_lost::kill || commands_own == all_well ? lock_lost : commands_own;
}

void supervisor::wait_for_event() {
    std::array<pollfd, 2> events{{{signals_.fd(), POLLIN, 0}, {lost_event_.fd(), POLLIN, 0}}};
    // What lost_event_ has to say is heard once; it is never reset.
    const nfds_t heard = lost_ ? 1 : 2;
    if (::poll(events.data(), heard, timeout_ms(next_look())) < 0 && errno != EINTR) throw_errno("poll");
}

instant supervisor::next_look() const {
    if (lost_) return killed_ ? never : kill_at_;
    // Half a lease after it was proved it has been renewed, if all is well; else look more often.
    return std::max(valid_until_ - terms_.lease / 2, boot_now() + terms_.lease / 20);
}

void supervisor::signal_group(int signal) const noexcept {
    HOLDFAST_ASSERT(group_ > 1);  // 0 would be our own group, 1 everybody
    ::kill(-group_, signal);
}

void supervisor::handle(int signal) {
    if (signal == SIGCHLD) return;
    if (signal == SIGCONT && stopped_) return resume();
    signal_group(signal);
}

void supervisor::read_status() {
    for (;;) {
        int status = 0;
        const pid_t who = ::waitpid(group_, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (who < 0 && errno == EINTR) continue;
        if (who <= 0) return;
        if (WIFCONTINUED(status)) {
            stopped_ = false;
        } else if (WIFSTOPPED(status)) {
            stopped(WSTOPSIG(status));
        } else {
            status_ = status;
            ended_ = true;
            return;
        }
    }
}

void supervisor::stopped(int by) {
    stopped_ = true;
    if ((by == SIGTTIN || by == SIGTTOU) && tty_.is_ours()) {
        // It wants the terminal, and we can give it.
        tty_.give_to(group_);
        stopped_ = false;
        return signal_group(SIGCONT);
    }
    // Somebody's plain SIGSTOP is between them and the command: they will continue it, not us.
    if (by == SIGSTOP && !tty_.is_given_away()) return;
    tty_.take_back();
    stop_this_process();
    resume();
}

void supervisor::resume() {
    if (!lost_ && !hold_is_confirmed()) lose("it did not outlast the stop");
    if (lost_ && terms_.reaction == on_lost::kill) return;
    if (tty_.is_wanted_at_once()) tty_.give_to(group_);
    stopped_ = false;
    signal_group(SIGCONT);
}

bool supervisor::hold_is_confirmed() {
    while (hold_.validity() > 0ms) {
        const auto why_not = hold_.renew();
        if (!why_not) return true;
        if (why_not == make_error_code(errc::lost)) return false;
        std::this_thread::sleep_for(20ms);  // the link may have broken while we were stopped
    }
    return false;
}

milliseconds supervisor::read_validity() {
    const milliseconds left = hold_.validity();
    if (left <= 0ms) return left;
    valid_until_ = std::max(valid_until_, boot_now() + left);
    const instant last_moment = valid_until_ - kill_margin(terms_.lease) / 2;
    guard_.allow_until(terms_.reaction == on_lost::kill ? last_moment : never);
    return left;
}

void supervisor::check_hold() {
    if (lost_) return;
    const milliseconds left = read_validity();
    if (hold_.lost().stop_requested() || left <= kill_margin(terms_.lease)) lose(reason_of_loss(hold_, terms_.lease));
}

void supervisor::lose(const std::string& why) {
    lost_ = true;
    if (terms_.reaction == on_lost::warn) {
        tell(fmt::format("lost the lock '{}': {}; the command goes on, because of --on-lost=warn", terms_.name, why));
        return;
    }
    tell(fmt::format("lost the lock '{}': {}; ending the command", terms_.name, why));
    kill_at_ = std::min(boot_now() + terms_.grace, valid_until_ - kill_margin(terms_.lease));
    signal_group(SIGTERM);
    signal_group(SIGCONT);  // a stopped process hears TERM only when it goes on
}

void supervisor::kill_if_due() {
    if (killed_ || boot_now() < kill_at_) return;
    killed_ = true;
    signal_group(SIGKILL);
}

void supervisor::clear_group() {
    // The command is gone, but what it started may be slower, or deaf to TERM.
    while (::kill(-group_, 0) == 0 && boot_now() < kill_at_) std::this_thread::sleep_for(5ms);
    signal_group(SIGKILL);
}

}  // namespace holdfast::cli
