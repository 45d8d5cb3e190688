// holdfast web: the locks of a server on a page in the browser.
//
// One thread serves the browsers, one looks at the locks, and one examines the servers now and then. So a server is
// asked equally often, however many browsers look, and one that hangs does not stop the page.
#include "cli/commands/view_options.hpp"
#include "cli/doctor/examination.hpp"
#include "cli/inspect/locks/lock_end.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/output/lock_text.hpp"
#include "cli/terminal/text.hpp"
#include "cli/web/web_site.hpp"

#include <fmt/format.h>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;

struct web_options : view_options {
    std::string listen = "127.0.0.1:7575";
    std::string interval = "1s";
    std::string grace = "10s";
    std::string max_lease;
    std::vector<std::string> hosts;
    bool token = false;
    bool allow_release = false;

    milliseconds pause() const {
        const milliseconds chosen = duration_of(interval, "--interval");
        if (chosen < 50ms) throw trouble("--interval: at least 50ms");
        return chosen;
    }
};

// Does something again and again, in a thread of its own, until it is destroyed.
class repeated {
public:
    repeated(milliseconds pause, std::function<void()> work)
        : thread_([this, pause, work = std::move(work)](const std::stop_token& stop) {
              while (!stop.stop_requested()) {
                  const auto begin = std::chrono::steady_clock::now();
                  work();
                  // What takes long gets as much rest: it is half of the time at most.
                  const auto took = std::chrono::steady_clock::now() - begin;
                  std::unique_lock lock(mutex_);
                  wake_.wait_for(lock, stop, std::max<std::chrono::nanoseconds>(pause, took), [] { return false; });
              }
          }) {}

private:
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::jthread thread_;  // the last: it ends first
};

web_look look_at_locks(server_set& servers, const std::string& prefix) {
    web_look look;
    const auto begin = std::chrono::steady_clock::now();
    try {
        look.locks = find_locks(servers, prefix);
        look.silent = servers.all_silent();
        look.servers_up = servers.size() - servers.silent().size();
        look.members_silent = servers.silent_members().size();
        if (look.servers_up < servers.majority()) {
            look.trouble = fmt::format("fewer than a majority of the servers answer: {}", look.silent.front().why);
        }
    } catch (const error& why) {
        look.trouble = why.what();
    }
    look.took = std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - begin);
    return look;
}

json health_of(server_set& servers, const survey_terms& terms) {
    const auto now = std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
    try {
        json found = to_json(examine(servers, terms));
        found["at"] = now.count();
        return found;
    } catch (const error& why) {
        return {{"at", now.count()}, {"error", why.what()}};
    }
}

// What became of a release, for the page and for the terminal.
json end_hold(const std::vector<std::string>& urls, const lock_ref& lock, const std::string& holder,
              milliseconds grace) {
    const std::string name = lock.name.text();
    try {
        server_set servers(urls);
        const sightings seen = look_at_each(servers, lock, holder);
        const lock_state merged = merge(seen);
        if (merged.is_free()) return {{"name", name}, {"ok", false}, {"text", "already over"}};
        const outcome what = end_holds(servers, seen, merged, grace).front();
        return {{"name", name},
                {"holder", person(merged.holders.front())},
                {"ok", what.is_over(servers)},
                {"text", describe(what, servers)}};
    } catch (const error& why) {
        return {{"name", name}, {"ok", false}, {"text", why.what()}};
    }
}

class web {
public:
    explicit web(const web_options& options)
        : options_(options),
          pause_(options.pause()),
          grace_(duration_of(options.grace, "--grace")),
          choice_(choose_servers(options.servers, notices::shown)),
          servers_(choice_.urls),
          site_(about(), guard(),
                options.allow_release
                    ? web_site::releaser([this](const auto& lock, const auto& id) { return release(lock, id); })
                    : nullptr),
          http_(context_, options.listen, [this](const http_request& asked) { return site_.answer(asked); },
                {.body_bytes = 16 * 1024}) {
        if (!http_.is_loopback() && !options.token) {
            throw trouble(
                fmt::format("--listen {}: others can reach that address; say --token, so that only who has it can look",
                            options.listen));
        }
    }

    int serve() {
        boost::asio::signal_set ending(context_, SIGINT, SIGTERM, SIGHUP);
        ending.async_wait([this](boost::system::error_code, int) {
            http_.stop();
            context_.stop();
        });
        keep_alive();
        tell_address();
        const survey_terms terms{.origin = choice_.origin,
                                 .prefix = options_.prefix,
                                 .max_lease = options_with(options_.max_lease).max_lease,
                                 .servers = servers_.size()};
        server_set examined(choice_.urls);
        const repeated looks(pause_, [this] {
            later([this, look = look_at_locks(servers_, options_.prefix)]() mutable { site_.show(std::move(look)); });
        });
        bool is_first = true;
        const repeated examinations(1min, [&] {
            if (!std::exchange(is_first, false) && listeners_ == 0) return;
            later([this, found = health_of(examined, terms)] { site_.show_health(found); });
        });
        context_.run();
        return all_well;
    }

private:
    template <typename Work>
    void later(Work work) {
        boost::asio::post(context_, std::move(work));
    }

    json about() const {
        return {{"version", HOLDFAST_VERSION},
                {"servers", servers_.names()},
                {"local", choice_.origin == server_origin::local},
                {"release", options_.allow_release},
                {"interval_ms", pause_.count()}};
    }

    web_guard guard() {
        web_guard result{.is_token_for_all = options_.token};
        for (std::string host : options_.hosts) {
            std::ranges::transform(host, host.begin(),
                                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
            result.hosts.insert(host);
        }
        if (!options_.token && !options_.allow_release) return result;
        token_ = result.token = environment("HOLDFAST_WEB_TOKEN");
        if (token_.empty()) {
            token_ = result.token = random_token();
        } else if (token_.size() < 16) {
            throw trouble("HOLDFAST_WEB_TOKEN is too short: at least 16 characters");
        } else {
            token_.clear();  // who has set it knows it
        }
        return result;
    }

    // The token is behind '#', which browsers keep for themselves.
    void tell_address() const {
        tell(fmt::format("listening on {}/{}", http_.url(), token_.empty() ? "" : "#token=" + token_));
        if (!http_.is_loopback()) {
            tell(
                "everything that this page shows, and the token, cross the network as they are; see docs/web.md for "
                "TLS");
        }
    }

    void keep_alive() {
        timer_.expires_after(10s);
        timer_.async_wait([this](boost::system::error_code why) {
            if (why) return;
            site_.send_sign_of_life();
            listeners_ = site_.listeners();
            keep_alive();
        });
    }

    bool release(const lock_ref& lock, const std::string& holder) {
        if (releasing_.exchange(true)) return false;
        tell(fmt::format("'{}': somebody asked for its release", excerpt(lock.name.text())));
        release_ = std::jthread([this, lock, holder] {
            const json notice = end_hold(choice_.urls, lock, holder, grace_);
            tell(fmt::format("'{}': {}", excerpt(lock.name.text()), printable(notice["text"].get<std::string>())));
            later([this, notice] { site_.show_notice(notice); });
            releasing_ = false;
        });
        return true;
    }

    const web_options& options_;
    const milliseconds pause_;
    const milliseconds grace_;
    const server_choice choice_;
    server_set servers_;
    std::string token_ = {};  // to be printed
    boost::asio::io_context context_;
    web_site site_;
    http_server http_;
    boost::asio::steady_timer timer_{context_};
    std::atomic<std::size_t> listeners_{0};
    std::atomic<bool> releasing_{false};
    std::jthread release_;
};

}  // namespace

void add_web(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<web_options>(app, "web", "show the locks live on a page in the browser", status,
                                 [](const web_options& chosen) { return web(chosen).serve(); });
    command->add_option("--listen", options->listen, "serve it there (127.0.0.1:7575)")->type_name("ADDR");
    command->add_option("--interval", options->interval, "look at the locks so often (1s)")->type_name("TIME");
    command->add_flag("--token", options->token, "only who has the token can look; needed for other machines");
    command->add_flag("--allow-release", options->allow_release, "who has the token can release locks");
    command->add_option("--grace", options->grace, "time for a holder to stop when it is released (10s)")
        ->type_name("TIME");
    command->add_option("--host", options->hosts, "a name that browsers may call it by (several: again)")
        ->type_name("NAME")
        ->allow_extra_args(false);
    declare_max_lease(*command, options->max_lease);
    declare_server(*command, *options);
    command->footer(
        "The page needs nothing from elsewhere. It shows the locks, the queue and the history of each, and what\n"
        "`holdfast doctor` finds; /metrics is for Prometheus. It changes nothing, unless --allow-release is given.\n"
        "Only this machine can connect, unless --listen names another address; that needs --token. The token is that\n"
        "of HOLDFAST_WEB_TOKEN, else a new one, which is printed. Ends by a signal, with status 0.");
}

}  // namespace holdfast::cli
