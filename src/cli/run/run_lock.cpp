#include "cli/run/run_lock.hpp"

#include <poll.h>

#include <array>
#include <thread>
#include <utility>

namespace holdfast::cli {
namespace {

// Reads signals while the main thread waits in the queue.
class signal_reader {
public:
    signal_reader(signal_inbox& signals, waiting_display* display)
        : signals_(signals), display_(display), thread_([this] { read(); }) {}
    ~signal_reader() { finish(); }

    std::stop_token asked_to_stop() const { return stop_.get_token(); }

    // Ends the reading; then what has come is known.
    std::optional<int> finish() {
        done_.raise();
        if (thread_.joinable()) thread_.join();
        return signal_;
    }

private:
    void read() {
        for (;;) {
            std::array<pollfd, 2> events{{{signals_.fd(), POLLIN, 0}, {done_.fd(), POLLIN, 0}}};
            if (::poll(events.data(), events.size(), -1) < 0) continue;
            while (const auto signal = signals_.take()) {
                // All others are meant for the command, which does not exist yet.
                if (*signal == SIGTSTP) stop();
                if (!asks_to_end(*signal) || signal_) continue;
                signal_ = signal;
                stop_.request_stop();
            }
            if (events[1].revents != 0) return;
        }
    }

    void stop() {
        if (display_ != nullptr) display_->clear();
        stop_this_process();
    }

    signal_inbox& signals_;
    waiting_display* display_;
    event done_;
    std::stop_source stop_;
    std::optional<int> signal_;
    std::thread thread_;
};

}  // namespace

run_lock::run_lock(const client& link, const std::string& name, side which, const shared_mutex_options& options,
                   const extras& more)
    : side_(which), wanted_(more.wanted), note_(more.note) {
    if (which == side::plain) {
        plain_.emplace(link, name,
                       mutex_options{.lease = options.lease,
                                     .replicas = options.replicas,
                                     .keys = options.keys,
                                     .prefix = options.prefix,
                                     .delay = more.delay});
    } else if (which == side::counted) {
        counted_.emplace(
            link, name, wanted_.limit,
            semaphore_options{
                .lease = options.lease, .replicas = options.replicas, .keys = options.keys, .prefix = options.prefix});
    } else {
        shared_.emplace(link, name, options);
    }
}

holdfast::lease run_lock::acquire(patience limit, std::stop_token stop) {
    acquire_options options{.stop = std::move(stop), .note = note_};
    if (side_ == side::counted) {
        return limit ? counted_->try_acquire_for(*limit, wanted_.take, std::move(options))
                     : counted_->acquire(wanted_.take, std::move(options));
    }
    if (side_ == side::reading) {
        return limit ? shared_->try_acquire_shared_for(*limit, std::move(options))
                     : shared_->acquire_shared(std::move(options));
    }
    return limit ? exclusive().try_acquire_for(*limit, std::move(options)) : exclusive().acquire(std::move(options));
}

waited wait_for_lock(run_lock& lock, patience limit, signal_inbox& signals, waiting_display* display) {
    signal_reader reader(signals, display);
    waited result;
    try {
        result.hold = lock.acquire(limit, reader.asked_to_stop());
    } catch (const error& why) {
        if (why.condition() != errc::cancelled) throw;
    }
    result.signal = reader.finish();
    if (result.signal) result.hold.release();
    return result;
}

std::string advice_on_kind(const lock_state& found, side wanted) {
    if (!found.looks_like.empty()) {
        return "the key holds what looks like " + found.looks_like +
               ", which holdfast cannot share; choose another name";
    }
    if (found.is_no_lock) return "the key holds something that is no lock; choose another name or --prefix";
    if (found.limit) {
        return "it is used as a semaphore; say --slots " + std::to_string(found.limit->declared) +
               " to take one of its permits, or choose another name";
    }
    if (wanted == side::counted) {
        return "it is used as another kind of lock; have all who use it say --slots, or choose another name";
    }
    if (wanted == side::plain) {
        return "it is used as a read-write lock; say --shared to hold it with others, or --exclusive to hold it alone";
    }
    return "it is held as a plain lock, which --shared cannot share; have those who hold it alone say --exclusive, too";
}

}  // namespace holdfast::cli
