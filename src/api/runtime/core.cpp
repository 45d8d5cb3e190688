#include "api/runtime/core.hpp"

#include "net/stream_kinds.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::api {
namespace {

constexpr unsigned largest_margin_percent = 50;
constexpr milliseconds shortest_max_lease{100};
constexpr milliseconds longest_max_lease{std::chrono::hours(24)};
constexpr milliseconds shortest_lease_at_all{10};
constexpr milliseconds longest_first_connect{std::chrono::hours(24)};
constexpr std::chrono::milliseconds longest_spin{10};
// At most this part of a lease is left out for the sake of the servers' clocks.
constexpr int skew_part = 4;
// And so much of it for them and for the margin together: what is left must be enough for the first renewal, which is
// sent after a third.
constexpr unsigned most_left_out_percent = 60;

engine::engine_settings engine_settings_for(milliseconds request_timeout, const client_options& options) {
    return {.request_timeout = request_timeout,
            .first_connect = options.first_connect,
            .fence_retention = options.fence_retention,
            .lost_margin_percent = options.lost_margin_percent,
            .clock_skew = options.clock_skew,
            .max_depth = options.max_depth};
}

milliseconds shortest_lease_for(const client_options& options) {
    // The engine takes off 1 % and 2 ms for clocks that do not run at the same speed.
    const auto left_for_skew_percent = static_cast<int>(most_left_out_percent - options.lost_margin_percent) - 1;
    const milliseconds taken_off = options.clock_skew + milliseconds(2);
    const milliseconds with_margin =
        (taken_off * 100 + milliseconds(left_for_skew_percent - 1)) / left_for_skew_percent;
    return std::max({shortest_lease_at_all, options.clock_skew * skew_part, with_margin});
}

void check(const client_options& options) {
    const auto require = [](bool fine, const char* what) {
        if (!fine) throw error(errc::bad_option, what);
    };
    require(options.lost_margin_percent >= 1 && options.lost_margin_percent <= largest_margin_percent,
            "lost_margin_percent must be from 1 to 50");
    require(options.max_lease >= shortest_max_lease && options.max_lease <= longest_max_lease,
            "max_lease must be from 100 ms to 24 h");
    require(options.fence_retention >= options.max_lease, "fence_retention must be at least max_lease");
    require(options.clock_skew >= milliseconds(0) && options.clock_skew <= options.max_lease / skew_part,
            "clock_skew must be from 0 to a quarter of max_lease");
    require(shortest_lease_for(options) <= options.max_lease,
            "clock_skew and lost_margin_percent together must leave two fifths of max_lease");
    require(options.max_depth >= 1, "max_depth must be at least 1");
    require(options.max_kept >= 1, "max_kept must be at least 1");
    require(options.first_connect >= milliseconds(1) && options.first_connect <= longest_first_connect,
            "first_connect must be from 1 ms to 24 h");
    require(!options.spin || (options.spin->count() >= 0 && *options.spin <= longest_spin),
            "spin must be from 0 to 10 ms");
}

void check_credentials(const std::vector<redis::server_settings>& servers, const client_options& options) {
    const auto refuse = [](const redis::server_settings& server, const char* what) {
        throw error(errc::bad_option, server.display() + ": " + what);
    };
    for (const redis::server_settings& server : servers) {
        if (options.credentials && server.has_login()) {
            refuse(server, "client_options::credentials gives user and password, so the URL must not");
        }
        if (!options.sentinel_credentials) continue;
        if (!server.sentinels) refuse(server, "sentinel_credentials are for redis+sentinel:// URLs");
        if (server.sentinels->has_login()) {
            refuse(server, "client_options::sentinel_credentials gives user and password, so the URL must not");
        }
    }
}

std::pair<milliseconds, milliseconds> timeouts(const std::vector<redis::server_settings>& servers) {
    milliseconds shortest = milliseconds::max();
    milliseconds longest{0};
    for (const redis::server_settings& server : servers) {
        shortest = std::min(shortest, server.request_timeout);
        longest = std::max(longest, server.request_timeout);
    }
    return {shortest, longest};
}

std::string names_of(const std::vector<redis::server_settings>& servers) {
    std::string names;
    for (const redis::server_settings& server : servers) names += (names.empty() ? "" : ", ") + server.display();
    return names;
}

// The threads that take a core down in another's place. A program that ends waits for them: one may still have a
// release to see through. Made with the first of them, so it goes before what was there before, OpenSSL's own end
// included.
class departure_hall {
public:
    ~departure_hall() {
        // Not for ever: a callback that ends the program is one that a core would wait for.
        constexpr std::chrono::seconds long_enough{10};
        std::unique_lock held(mutex_);
        all_gone_.wait_for(held, long_enough, [this] { return under_way_ == 0; });
    }

    void delete_elsewhere(core* made) {
        {
            const std::lock_guard held(mutex_);
            ++under_way_;
        }
        std::thread([this, made] {
            delete made;
            const std::lock_guard held(mutex_);
            if (--under_way_ == 0) all_gone_.notify_all();
        }).detach();
    }

private:
    std::mutex mutex_;
    std::condition_variable all_gone_;
    std::size_t under_way_ = 0;
};

departure_hall& departures() {
    static departure_hall only;
    return only;
}

// In a forked child nothing is taken down: closing would reach into the parent's epoll set, and the threads
// to join are not there. On a thread that drives the loop or is inside the section (a handler died with its
// executor and took the last lease along) a thread of its own does it: it could not join itself.
void take_down(core* made) {
    if (made->forked()) return;
    if (!serial_section::inside_any() && !loop::driven_by_this_thread()) {
        delete made;
    } else {
        departures().delete_elsewhere(made);
    }
}

}  // namespace

core::core(const std::vector<redis::server_settings>& servers, client_options options)
    : made_in_(fork_generation()),
      options_(std::move(options)),
      shortest_request_timeout_(timeouts(servers).first),
      request_timeout_(timeouts(servers).second),
      display_(names_of(servers)),
      loop_(options_.spin),
      notifier_(loop_),
      recorder_(options_, notifier_),
      alarm_(loop_.context(), *this, *this),
      credentials_(*this, recorder_),
      backends_(make_backends(servers)),
      engine_(engine_settings_for(request_timeout_, options_), links(), random_, recorder_),
      kept_(*this, options_.max_kept),
      posted_releases_(*this, loop_) {
    recorder_.know(engine_.id());
    for (std::size_t i = 0; i < backends_.size(); ++i) backends_[i]->attach(engine_.node(i), engine_.id().text());
    // The section is entered once so that settle() connects right away.
    enter_with([this] {
        for (const auto& one : backends_) one->on_timer(boot_now());
    });
}

std::vector<std::unique_ptr<backend>> core::make_backends(const std::vector<redis::server_settings>& servers) {
    std::vector<std::unique_ptr<backend>> made;
    // Where several vote, one that may have lost its data must not help to elect a second holder.
    const bool mistrusts = options_.after_restart == restarted_server::mistrusted || servers.size() > 1;
    for (redis::server_settings server : servers) {
        use_credentials(server);
        made.push_back(make_backend({.context = loop_.context(),
                                     .section = *this,
                                     .recorder = recorder_,
                                     .mistrusted_for = mistrusts ? options_.max_lease : milliseconds(0),
                                     .jitter_seed = random_.next(),
                                     .runs = runs_},
                                    server));
    }
    return made;
}

void core::use_credentials(redis::server_settings& server) {
    server.logins = credentials_.source_for(server, options_.credentials);
    if (server.sentinels) {
        server.sentinels->logins = credentials_.source_for(*server.sentinels, options_.sentinel_credentials);
    }
}

std::vector<engine::node_link> core::links() const {
    std::vector<engine::node_link> all;
    for (const auto& one : backends_) all.push_back(one->link());
    return all;
}

backend& core::some_server() noexcept {
    const auto up = std::find_if(backends_.begin(), backends_.end(), [](const auto& one) { return one->up(); });
    return *(up == backends_.end() ? backends_.front() : *up);
}

core::~core() {
    kept_.leave_process();
    wait_for_posted_releases(never);
    // Nobody waits any more; the loop may still run in the background. After stop() nothing runs that could enter.
    enter_with([this] {
        for (const auto& one : backends_) one->close(boot_now());
        alarm_.close();
    });
    credentials_.stop();
    notifier_.stop();
    loop_.stop();
}

milliseconds core::shortest_lease() const noexcept {
    return shortest_lease_for(options_);
}

void core::check_not_forked() const {
    if (forked()) throw error(errc::forked, display_);
}

void core::settle() {
    if (forked()) return;  // on every path: nothing of the child goes out on its parent's link
    const instant now = boot_now();
    for (const auto& one : backends_) one->look_around(now);
    instant due = engine_.deadline();
    bool is_sending = false;
    for (const auto& one : backends_) {
        one->pump(now);
        is_sending = is_sending || one->is_sending();
        due = std::min(due, one->deadline());
    }
    due = std::min({due, engine_.deadline(), kept_.deadline(), posted_releases_.deadline()});
    is_sending_.store(is_sending, std::memory_order_relaxed);
    alarm_.set(due);
    loop_.next_timer(due);
}

void core::on_alarm() {
    const instant now = boot_now();
    for (const auto& one : backends_) one->on_timer(now);
    engine_.on_timer(now);
    kept_.on_timer(now);
    posted_releases_.on_timer(now);
}

std::shared_ptr<core> make_core(const std::vector<std::string>& urls, client_options options) {
    check(options);
    if (urls.empty()) throw error(errc::bad_url, "a client needs at least one server");
    std::vector<redis::server_settings> servers;
    for (const std::string& url : urls) servers.push_back(redis::parse_url(url));
    return make_core(servers, std::move(options));
}

std::shared_ptr<core> make_core(const std::vector<redis::server_settings>& servers, client_options options) {
    check(options);
    check_credentials(servers, options);
    for (const redis::server_settings& each : servers) {
        const bool asks_by_tls = each.sentinels && each.sentinels->kind == redis::transport::tls;
        if (each.kind == redis::transport::tls || asks_by_tls) net::require_tls(each.display());
    }
    return {new core(servers, std::move(options)), take_down};
}

}  // namespace holdfast::api
