#include <holdfast/striped_shared_mutex.hpp>

#include "api/locks/lock_definition.hpp"
#include "api/locks/together.hpp"
#include "api/runtime/client_access.hpp"
#include "api/runtime/thread_locks.hpp"
#include "api/runtime/thread_owner.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace holdfast {
namespace {

constexpr std::size_t most_stripes = 1024;

// The rest of a wait that began as `wait` and ends at `deadline`. Zero stays zero, and no limit stays no limit.
milliseconds left_of(milliseconds wait, std::chrono::steady_clock::time_point deadline) {
    if (wait <= milliseconds(0) || wait >= detail::for_ever_from) return wait;
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(left, milliseconds(0));
}

std::chrono::steady_clock::time_point deadline_of(milliseconds wait) {
    const auto now = std::chrono::steady_clock::now();
    return wait >= detail::for_ever_from ? std::chrono::steady_clock::time_point::max() : now + wait;
}

}  // namespace

striped_lease::striped_lease() noexcept = default;
striped_lease::striped_lease(striped_lease&&) noexcept = default;

striped_lease::striped_lease(std::vector<lease> leases)
    : leases_(std::move(leases)), loss_(std::make_unique<api::loss_of_any>(leases_)) {}

striped_lease& striped_lease::operator=(striped_lease&& other) noexcept {
    if (this != &other) {
        give_all_back();
        leases_ = std::move(other.leases_);
        loss_ = std::move(other.loss_);
        other.leases_.clear();
    }
    return *this;
}

striped_lease::~striped_lease() {
    give_all_back();
}

void striped_lease::give_all_back() noexcept {
    while (!leases_.empty()) leases_.pop_back();
    loss_.reset();
}

std::uint64_t striped_lease::token() const noexcept {
    std::uint64_t largest = 0;
    for (const lease& one : leases_) largest = std::max(largest, one.token());
    return largest;
}

milliseconds striped_lease::validity() const noexcept {
    return api::validity_of_all(leases_);
}

std::stop_token striped_lease::lost() const noexcept {
    return loss_ ? loss_->token() : std::stop_token();
}

boost::system::error_code striped_lease::release() noexcept {
    if (leases_.empty()) return make_error_code(errc::not_held);
    boost::system::error_code first;
    while (!leases_.empty()) {
        const auto result = leases_.back().release();
        if (result && !first) first = result;
        leases_.pop_back();
    }
    loss_.reset();
    return first;
}

striped_shared_mutex::striped_shared_mutex(const client& client, std::string name, std::size_t stripes,
                                           shared_mutex_options options)
    : name_(std::move(name)) {
    if (stripes < 1 || stripes > most_stripes) throw error(errc::bad_option, "stripes must be from 1 to 1024");
    // Checks the name, too: the number of a stripe behind it must not make a bad name usable.
    api::lock_definition lock = api::define(*api::core_of(client), name_, options);
    if (lock.is_kept()) {
        throw error(errc::bad_option, "a striped lock takes neither keep nor passes: use a shared_mutex for that");
    }
    const auto name_of = [this](std::size_t stripe) { return name_ + "#" + std::to_string(stripe); };
    auto all = std::make_shared<std::vector<wire::lock_keys>>();
    for (std::size_t i = 0; i < stripes; ++i) all->push_back(api::keys_of(name_of(i), options));
    lock.options.upgrading = engine::upgrades::refused;
    lock.options.stripes = static_cast<std::uint16_t>(stripes);
    for (std::size_t i = 0; i < stripes; ++i) {
        lock.keys = std::shared_ptr<const wire::lock_keys>(all, &(*all)[i]);
        stripes_.push_back(std::unique_ptr<shared_mutex>(new shared_mutex(client, lock)));
        lock.options.stripes = 0;  // a writer that holds the first stripe reads none of the others
    }
}

// All stripes share one warning.
striped_shared_mutex::~striped_shared_mutex() {
    try {
        const auto whole = std::make_shared<api::destroyed_lock>(api::destroyed_lock{name_});
        for (auto last = stripes_.rbegin(); last != stripes_.rend(); ++last)
            (*last)->release_what_threads_locked(whole);
    } catch (const std::bad_alloc&) {
        stripes_.clear();  // each stripe warns for itself
    }
}

shared_mutex& striped_shared_mutex::mine() noexcept {
    return *stripes_[api::stripe_of(api::this_thread_as_owner(), stripes_.size())];
}

shared_mutex& striped_shared_mutex::stripe_for(const acquire_options& options) noexcept {
    const std::uint64_t number = options.owner ? api::owner_access::number(*options.owner) : api::next_owner_number();
    return *stripes_[api::stripe_of(engine::owner_id{number}, stripes_.size())];
}

void striped_shared_mutex::lock() {
    try_lock_within(detail::for_ever);
}

bool striped_shared_mutex::try_lock_within(milliseconds wait) {
    const auto deadline = deadline_of(wait);
    while (true) {
        if (!try_take_all(wait, deadline)) return false;
        // The first stripe may be lost during the wait for the last one.
        if (std::all_of(stripes_.begin(), stripes_.end(), [](const auto& stripe) { return stripe->still_held(); })) {
            return true;
        }
        unlock();
    }
}

bool striped_shared_mutex::try_take_all(milliseconds wait, std::chrono::steady_clock::time_point deadline) {
    std::size_t taken = 0;
    const auto back_out = [&] {
        while (taken > 0) stripes_[--taken]->unlock();
    };
    try {
        for (const auto& stripe : stripes_) {
            if (!stripe->try_lock_as(mode::exclusive, left_of(wait, deadline))) {
                back_out();
                return false;
            }
            ++taken;
        }
    } catch (...) {
        back_out();
        throw;
    }
    return true;
}

void striped_shared_mutex::unlock() noexcept {
    for (auto stripe = stripes_.rbegin(); stripe != stripes_.rend(); ++stripe) (*stripe)->unlock();
}

// On failure ~striped_lease() releases in the opposite order.
striped_lease striped_shared_mutex::acquire_within(milliseconds wait, acquire_options options) {
    const auto deadline = deadline_of(wait);
    while (true) {
        striped_lease taken;
        taken.leases_.reserve(stripes_.size());
        for (const auto& stripe : stripes_) {
            lease one = stripe->acquire_as(mode::exclusive, left_of(wait, deadline), options);
            if (!one) return {};
            taken.leases_.push_back(std::move(one));
        }
        if (all_valid(taken.leases_)) return striped_lease(std::move(taken.leases_));
    }
}

bool striped_shared_mutex::all_valid(const std::vector<lease>& leases) noexcept {
    return api::all_valid(leases);
}

}  // namespace holdfast
