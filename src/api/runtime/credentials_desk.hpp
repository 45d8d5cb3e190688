// Asks for user and password where they may change: the user's callback, or the file that a URL names.
//
// Both may be slow, and the callback is user code: neither runs in the serial section or on a thread that drives the
// loop. They run on threads of their own, which start when they are needed. The callback thread would be the wrong
// place: a slow secret store must not delay lost().
//
// Each server has at most one question that is being answered, and all together have `most_at_once`: an answer for one
// server that does not come must not keep a majority of others from their logins.
#pragma once

#include "api/runtime/watcher.hpp"
#include "base/serial_section.hpp"
#include "redis/url/server_url.hpp"

#include <holdfast/options.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::api {

class credentials_desk {
public:
    credentials_desk(serial_section& section, api::watcher& watcher)
        : state_(std::make_shared<shared_state>(section)), watcher_(watcher) {}
    ~credentials_desk() { stop(); }
    credentials_desk(const credentials_desk&) = delete;
    credentials_desk& operator=(const credentials_desk&) = delete;

    // For the links that use these settings; must not outlive this object. Null: their login does not change.
    std::shared_ptr<redis::login_source> source_for(const redis::server_access& access,
                                                    const credentials_source& callback);
    // Drops the questions that are not answered yet. Waits for the running callbacks, except one that itself calls
    // stop(). Outside of the section, before the loop stops.
    void stop();

    static constexpr std::size_t most_at_once = 8;

private:
    class source;
    using question = std::function<redis::login(const std::string& server)>;

    struct job {
        question ask;
        std::string server;
        std::weak_ptr<redis::login_receiver> to;
    };
    // Shared with the threads, one of which outlives the desk if a callback destroys it.
    struct shared_state {
        explicit shared_state(serial_section& where) : section(where) {}

        serial_section& section;  // do not use it once `stopping` is set
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<job> waiting;
        std::set<std::string> being_asked;  // servers
        std::size_t idle = 0;               // threads
        bool stopping = false;
    };

    void post(job next);
    static void run(const std::shared_ptr<shared_state>& state);
    static std::deque<job>::iterator next_job(shared_state& state);
    static void answer(shared_state& state, job asked);

    const std::shared_ptr<shared_state> state_;
    api::watcher& watcher_;
    std::vector<std::thread> threads_;  // guarded by the mutex until stop()
};

}  // namespace holdfast::api
