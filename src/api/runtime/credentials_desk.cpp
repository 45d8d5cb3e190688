#include "api/runtime/credentials_desk.hpp"

#include "base/signals_blocked.hpp"
#include "redis/resp/characters.hpp"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>
#include <variant>

namespace holdfast::api {
namespace {

constexpr std::size_t longest_quote = 300;

// The text of a user's exception, fit for a log.
std::string printable(std::string text) {
    if (text.size() > longest_quote) text.resize(longest_quote);
    std::ranges::replace_if(text, redis::is_control, '?');
    return text;
}

}  // namespace

class credentials_desk::source final : public redis::login_source {
public:
    source(credentials_desk& desk, question ask) : desk_(desk), ask_(std::move(ask)) {}
    void ask(const std::string& server, std::weak_ptr<redis::login_receiver> to) override {
        desk_.post({ask_, server, std::move(to)});
    }
    void warn(std::string text) override { desk_.recorder_.on_trouble(std::move(text)); }

private:
    credentials_desk& desk_;
    const question ask_;
};

std::shared_ptr<redis::login_source> credentials_desk::source_for(const redis::server_access& access,
                                                                  const credentials_source& callback) {
    if (callback) {
        return std::make_shared<source>(*this, [callback](const std::string& server) {
            credentials given = callback(server);
            redis::login made{std::move(given.user), redis::secret(std::move(given.password)), given.expires_in};
            redis::wipe(given.password);
            return made;
        });
    }
    if (access.password_file.empty()) return nullptr;
    return std::make_shared<source>(
        *this, [user = access.user, file = access.password_file](const std::string& /*server*/) -> redis::login {
            auto read = redis::read_password(file);
            if (const auto* const why = std::get_if<failure>(&read)) {
                throw error(why->code, "password_file=" + file + " " + why->detail);
            }
            return {user, std::get<redis::secret>(std::move(read))};
        });
}

void credentials_desk::post(job next) {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopping) return;
    state_->waiting.push_back(std::move(next));
    state_->changed.notify_one();
    if (state_->waiting.size() <= state_->idle || threads_.size() == most_at_once) return;
    const signals_blocked for_the_new_thread;
    try {
        threads_.emplace_back([state = state_] { run(state); });
    } catch (const std::system_error&) {
        // No more threads are to be had: those that are there answer one question after the other.
        if (!threads_.empty()) return;
        state_->waiting.pop_back();
        throw;
    }
}

void credentials_desk::stop() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stopping = true;
        state_->waiting.clear();
        state_->changed.notify_all();
    }
    for (std::thread& each : threads_) {
        if (!each.joinable()) continue;
        each.get_id() == std::this_thread::get_id() ? each.detach() : each.join();
    }
}

// The first question whose server is not being asked.
auto credentials_desk::next_job(shared_state& state) -> std::deque<job>::iterator {
    return std::ranges::find_if(state.waiting,
                                [&](const job& each) { return !state.being_asked.contains(each.server); });
}

void credentials_desk::run(const std::shared_ptr<shared_state>& state) {
    std::unique_lock lock(state->mutex);
    for (;;) {
        ++state->idle;
        state->changed.wait(lock, [&] { return state->stopping || next_job(*state) != state->waiting.end(); });
        --state->idle;
        if (state->stopping) return;
        const auto found = next_job(*state);
        job next = std::move(*found);
        state->waiting.erase(found);
        const std::string server = next.server;
        state->being_asked.insert(server);
        lock.unlock();
        answer(*state, std::move(next));
        lock.lock();
        state->being_asked.erase(server);
        state->changed.notify_one();  // of another question for it
    }
}

void credentials_desk::answer(shared_state& state, job asked) {
    redis::login given;
    failure why{errc::no_credentials, ""};
    bool is_given = false;
    try {
        given = asked.ask(asked.server);
        is_given = true;
    } catch (const std::exception& thrown) {
        why.detail = asked.server + ": no user and password: " + printable(thrown.what());
    } catch (...) {
        why.detail = asked.server + ": no user and password: the callback threw something that is no std::exception";
    }
    {
        const std::lock_guard lock(state.mutex);
        if (state.stopping) return;
    }
    // Until stop() has joined this thread, the section lives, unless the callback itself has called stop().
    state.section.enter_with(
        [to = std::move(asked.to), is_given, given = std::move(given), why = std::move(why)]() mutable {
            const auto receiver = to.lock();
            if (!receiver) return;
            is_given ? receiver->on_login(std::move(given)) : receiver->on_no_login(why);
        });
}

}  // namespace holdfast::api
