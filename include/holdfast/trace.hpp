// What becomes of locks, as spans of time.
#pragma once

#include <holdfast/export.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace holdfast {

/// Something that happened to a lock; see `client_options::trace`.
struct trace_event {
    /// What it is.
    enum class kind {
        acquire,  ///< from the request to the grant, by a free lock
        wait,     ///< from the request to the grant, which was handed over by the former holder
        refused,  ///< from the request to its end without the lock
        hold,     ///< from the grant to the release
        renew,    ///< an instant: the server confirmed a renewal
        lost      ///< an instant: the hold ended before it was released
    };

    kind what = kind::acquire;                      ///< what it is
    std::string lock;                               ///< the name of the lock
    std::string hold;                               ///< the hold id: the same for all events of one hold
    std::uint64_t token = 0;                        ///< the fencing token; 0 before the grant
    std::chrono::system_clock::time_point begin{};  ///< when it began
    std::chrono::system_clock::time_point end{};    ///< when it ended; of an instant, the same
};

/// "acquire", "wait", "refused", "hold", "renew", "lost".
HOLDFAST_EXPORT const char* name_of(trace_event::kind what) noexcept;

/// Writes events to a file in the JSON form that Perfetto (ui.perfetto.dev) and chrome://tracing read, for
/// `client_options::trace`. The file is overwritten, and can be read while it grows. At most a million events are
/// written. Several clients may share it.
///
/// Errors: throws std::system_error if the file cannot be opened.
HOLDFAST_EXPORT std::function<void(const trace_event&)> trace_to(const std::string& path);

}  // namespace holdfast
