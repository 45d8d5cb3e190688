#include "cli/run/run_lock.hpp"

#include <utility>

namespace holdfast::cli {

run_lock::run_lock(const client& link, const std::string& name, side which, const shared_mutex_options& options)
    : side_(which) {
    if (which == side::plain) {
        plain_.emplace(link, name,
                       mutex_options{.lease = options.lease, .keys = options.keys, .prefix = options.prefix});
    } else {
        shared_.emplace(link, name, options);
    }
}

holdfast::lease run_lock::acquire(patience limit, std::stop_token stop) {
    acquire_options options{.stop = std::move(stop)};
    if (side_ == side::reading) {
        return limit ? shared_->try_acquire_shared_for(*limit, std::move(options))
                     : shared_->acquire_shared(std::move(options));
    }
    return limit ? exclusive().try_acquire_for(*limit, std::move(options)) : exclusive().acquire(std::move(options));
}

std::string advice_on_kind(const lock_state& found, side wanted) {
    if (!found.looks_like.empty()) {
        return "the key holds what looks like " + found.looks_like +
               ", which holdfast cannot share; choose another name";
    }
    if (found.is_no_lock) return "the key holds something that is no lock; choose another name or --prefix";
    if (wanted == side::plain) {
        return "it is used as a read-write lock; say --shared to hold it with others, or --exclusive to hold it alone";
    }
    return "it is held as a plain lock, which --shared cannot share; have those who hold it alone say --exclusive, too";
}

}  // namespace holdfast::cli
