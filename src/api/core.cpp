#include "api/core.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::api {
namespace {

constexpr unsigned largest_margin_percent = 50;
constexpr milliseconds shortest_max_lease{100};
constexpr milliseconds longest_max_lease{std::chrono::hours(24)};

engine::engine_settings engine_settings_for(const redis::server_settings& settings, const client_options& options) {
    return {.request_timeout = settings.request_timeout,
            .fence_retention = options.fence_retention,
            .lost_margin_percent = options.lost_margin_percent,
            .max_depth = options.max_depth,
            .server = settings.display()};
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
    require(options.max_depth >= 1, "max_depth must be at least 1");
}

// In a forked child nothing is taken down: closing would reach into the parent's epoll set, and the threads
// to join are not there. On a thread that drives the loop or is inside the section (a handler died with its
// executor and took the last lease along) a thread of its own does it: it could not join itself.
void take_down(core* made) {
    if (made->forked()) return;
    if (!serial_section::inside_any() && !loop::driven_by_this_thread()) {
        delete made;
    } else {
        std::thread([made] { delete made; }).detach();
    }
}

}  // namespace

core::core(redis::server_settings settings, client_options options)
    : made_in_(fork_generation()),
      settings_(std::move(settings)),
      options_(std::move(options)),
      watcher_(options_, notifier_),
      alarm_(loop_.context(), *this, *this),
      connection_(loop_.context(), *this, settings_, *this, random_.next()),
      engine_(engine_settings_for(settings_, options_), *this, random_, watcher_),
      card_(engine_.id().text()) {
    // The section is entered once so that settle() connects right away.
    enter_with([this] { connection_.session().on_timer(boot_now()); });
}

core::~core() {
    // Nobody waits any more; the loop may still run in the background. After stop() nothing runs that could enter.
    enter_with([this] {
        const instant now = boot_now();
        card_.withdraw(connection_.session(), now);
        connection_.pump(now);
        connection_.close(now);
        alarm_.close();
    });
    loop_.stop();
}

void core::check_not_forked() const {
    if (forked()) throw error(errc::forked, settings_.display());
}

void core::settle() {
    if (forked()) return;  // whatever got here: nothing of the child's goes out on its parent's link
    const instant now = boot_now();
    connection_.pump(now);
    const instant due = std::min({engine_.deadline(), connection_.session().deadline(), card_.due()});
    alarm_.set(due);
    loop_.next_timer(due);
}

void core::on_alarm() {
    const instant now = boot_now();
    connection_.session().on_timer(now);
    engine_.on_timer(now);
    card_.refresh(connection_.session(), now);
}

void core::on_link_up(const redis::server_facts& facts, instant now) {
    watcher_.on_link_up(settings_.display(), facts.version);
    // A server whose uptime we may not ask for counts as just started.
    instant trusted_from{};
    if (options_.after_restart == restarted_server::mistrusted) {
        trusted_from = now + options_.max_lease - facts.uptime.value_or(std::chrono::seconds(0));
    }
    engine_.on_link_up(trusted_from, now);
    card_.on_link_up();
    card_.refresh(connection_.session(), now);
}

void core::on_link_down(const failure& why, instant now) {
    watcher_.on_link_down(why);
    card_.on_link_down();
    engine_.on_link_down(now);
}

void core::on_subscription_refused(const failure& why, instant now) {
    engine_.on_subscription_refused(why, now);
}

void core::on_push(const redis::reply_view& message, instant now) {
    engine_.on_push(message, now);
}

void core::submit(redis::command& request) {
    connection_.session().submit(request, boot_now());
}

bool core::withdraw(redis::command& request) {
    return connection_.session().withdraw(request);
}

void core::distrust(const failure& why) {
    connection_.session().distrust(why, boot_now());
}

void core::subscribe(const std::string& channel) {
    connection_.session().subscribe(channel);
}

bool core::link_is_up() const {
    return connection_.session().up();
}

std::shared_ptr<core> make_core(std::string_view url, client_options options) {
    check(options);
    return {new core(redis::parse_url(url), std::move(options)), take_down};
}

}  // namespace holdfast::api
