#include "api/core.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::api {
namespace {

constexpr unsigned largest_margin_percent = 50;

engine::engine_settings engine_settings_for(const redis::server_settings& settings,
                                            const client_options& options) {
    return {.request_timeout = settings.request_timeout,
            .fence_retention = options.fence_retention,
            .lost_margin_percent = options.lost_margin_percent,
            .server = settings.display()};
}

void check(const client_options& options) {
    if (options.lost_margin_percent == 0 || options.lost_margin_percent > largest_margin_percent) {
        throw error(errc::bad_option, "lost_margin_percent must be from 1 to 50");
    }
    if (options.fence_retention < std::chrono::minutes(2)) {
        throw error(errc::bad_option, "fence_retention must be at least two minutes");
    }
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

core::core(redis::server_settings settings, const client_options& options)
    : made_in_(fork_generation()),
      settings_(std::move(settings)),
      alarm_(loop_.context(), *this, *this),
      connection_(loop_.context(), *this, settings_, *this, random_.next()),
      engine_(engine_settings_for(settings_, options), *this, random_) {
    // The section is entered once so that settle() connects right away.
    enter_with([this] { connection_.session().on_timer(boot_now()); });
}

core::~core() {
    // Nobody waits any more; the loop may still run in the background. After stop() nothing runs that could
    // enter.
    enter_with([this] {
        connection_.close(boot_now());
        alarm_.close();
    });
    loop_.stop();
}

void core::check_not_forked() const {
    if (forked()) throw error(errc::forked, settings_.display());
}

void core::settle() {
    const instant now = boot_now();
    connection_.pump(now);
    const instant due = std::min(engine_.deadline(), connection_.session().deadline());
    alarm_.set(due);
    loop_.next_timer(due);
}

void core::on_alarm() {
    const instant now = boot_now();
    connection_.session().on_timer(now);
    engine_.on_timer(now);
}

void core::on_link_up(const redis::server_facts&, instant now) {
    engine_.on_link_up(now);
}

void core::on_link_down(const failure&, instant now) {
    engine_.on_link_down(now);
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

std::shared_ptr<core> make_core(std::string_view url, const client_options& options) {
    check(options);
    return {new core(redis::parse_url(url), options), take_down};
}

}  // namespace holdfast::api
