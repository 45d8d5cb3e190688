#include <holdfast/watch.hpp>

#include "api/runtime/client_access.hpp"
#include "api/runtime/core.hpp"
#include "engine/node/lock_watch.hpp"
#include "wire/keys.hpp"

#include <holdfast/detail/callback.hpp>

#include <boost/asio/error.hpp>

#include <mutex>
#include <utility>
#include <vector>

namespace holdfast {

namespace api {
class watch_callbacks;
}

// Told by the engine; calls the user back. The engine keeps it until the watching is over.
class api::watch_callbacks final : public engine::watch_listener, public std::enable_shared_from_this<watch_callbacks> {
public:
    watch_callbacks(api::core& where, std::function<void(const sight&)> callback,
                    std::function<void(const refusal&)> on_trouble)
        : where_(where), callback_(std::move(callback)), on_trouble_(std::move(on_trouble)) {}

    void stop() {
        const std::lock_guard waits_for_a_callback(mutex_);
        over_ = true;
    }

    std::vector<engine::lock_watch*> which;  // inside the section

private:
    enum class about : std::uint8_t { sight, trouble };
    struct call {
        about what;
        std::function<void(watch_callbacks&)> run;
    };

    void on_sight(const wire::watch_answer& seen) override {
        put({about::sight, [seen = sight{seen.holder, seen.note, seen.token, seen.left}](watch_callbacks& self) {
                 self.callback_(seen);
             }});
    }
    void on_trouble(const failure& why) override {
        if (!on_trouble_) return;
        put({about::trouble, [why = refusal{.code = why.code, .detail = why.detail}](watch_callbacks& self) {
                 self.on_trouble_(why);
             }});
    }
    // Of each kind only the newest waits: a callback that takes long costs no memory, and is then told what is.
    void put(call newest) {
        const std::lock_guard guard(waiting_mutex_);
        const bool replaces = std::erase_if(waiting_, [&](const call& older) { return older.what == newest.what; }) > 0;
        waiting_.push_back(std::move(newest));
        if (!replaces) where_.notifier().notify([self = shared_from_this()] { self->call_next(); });
    }
    std::optional<call> next() {
        const std::lock_guard guard(waiting_mutex_);
        if (waiting_.empty()) return std::nullopt;
        call first = std::move(waiting_.front());
        waiting_.erase(waiting_.begin());
        return first;
    }
    void call_next() {
        const std::lock_guard one_at_a_time(mutex_);
        const auto first = next();
        if (first && !over_) first->run(*this);
    }

    api::core& where_;  // lives as long as the watching, and nothing is told after it
    const std::function<void(const sight&)> callback_;
    const std::function<void(const refusal&)> on_trouble_;
    std::recursive_mutex mutex_;  // a callback may end the watching
    bool over_ = false;
    std::mutex waiting_mutex_;
    std::vector<call> waiting_;  // at most one of each kind
};

struct watching::parts {
    std::shared_ptr<api::core> where;
    std::shared_ptr<api::watch_callbacks> told;
};

watching::watching() noexcept = default;
watching::watching(std::unique_ptr<parts> made) noexcept : parts_(std::move(made)) {}
watching::watching(watching&&) noexcept = default;
watching& watching::operator=(watching&& other) noexcept {
    if (this == &other) return *this;
    stop();
    parts_ = std::move(other.parts_);
    return *this;
}
watching::~watching() {
    stop();
}

void watching::stop() noexcept {
    const std::unique_ptr<parts> mine = std::move(parts_);
    if (!mine) return;
    if (mine->where->forked()) {
        static_cast<void>(new std::shared_ptr(std::move(mine->told)));  // the parent's, with the parent's mutex
        return;
    }
    mine->told->stop();
    try {
        mine->where->post([where = mine->where.get(), told = mine->told] {
            for (engine::lock_watch* each : std::exchange(told->which, {})) where->engine().unwatch(*each, boot_now());
        });
    } catch (const std::bad_alloc&) {
        return;  // it goes on, and nobody is told
    }
}

watching watch(const client& client, const std::string& name, std::function<void(const sight&)> callback,
               const watch_options& options) {
    auto where = api::core_of(client);
    where->check_not_forked();
    auto keys = std::make_shared<const wire::lock_keys>(
        wire::make_keys(wire::lock_name(name), wire::key_naming::tagged, options.prefix));
    auto told = std::make_shared<api::watch_callbacks>(*where, std::move(callback), options.on_trouble);
    auto made = std::make_unique<watching::parts>(watching::parts{where, told});
    where->post([core = where.get(), told, keys = std::move(keys)] {
        told->which = core->engine().watch_all(keys, told, boot_now());
    });
    return watching(std::move(made));
}

// What a stream has not told yet: the last sight, or the trouble since. Written on the callback thread, read anywhere.
class api::latest_sight : public std::enable_shared_from_this<latest_sight> {
public:
    using completion = detail::completion<boost::system::error_code, sight>;

    void on_sight(const sight& seen) {
        const std::lock_guard guard(mutex_);
        if (waiting_) return finish({}, seen);
        trouble_ = {};
        untold_ = seen;
    }
    void on_trouble(errc why) {
        const std::lock_guard guard(mutex_);
        if (waiting_) return finish(make_error_code(why), {});
        trouble_ = make_error_code(why);
    }

    void next(std::unique_ptr<completion> handler) {
        const std::lock_guard guard(mutex_);
        if (waiting_) {
            completion& second = *handler;
            return second.complete(std::move(handler), boost::asio::error::already_started, {});
        }
        waiting_ = std::move(handler);
        ++number_;
        if (over_) return finish(boost::asio::error::operation_aborted, {});
        if (untold_) return finish({}, *std::exchange(untold_, std::nullopt));
        if (trouble_) return finish(std::exchange(trouble_, {}), {});
        if (!waiting_->can_be_cancelled()) return;
        waiting_->on_cancellation([weak = weak_from_this(), number = number_] {
            if (const auto live = weak.lock()) live->cancel(number);
        });
    }
    void stop() {
        const std::lock_guard guard(mutex_);
        over_ = true;
        if (waiting_) finish(boost::asio::error::operation_aborted, {});
    }

private:
    void cancel(std::uint64_t number) {
        const std::lock_guard guard(mutex_);
        if (waiting_ && number == number_) finish(boost::asio::error::operation_aborted, {});
    }
    // Posts the handler; it never runs in here.
    void finish(boost::system::error_code code, sight seen) {
        completion& handler = *waiting_;
        handler.complete(std::exchange(waiting_, nullptr), code, std::move(seen));
    }

    std::mutex mutex_;
    std::optional<sight> untold_;
    boost::system::error_code trouble_;  // since `untold_`
    std::unique_ptr<completion> waiting_;
    std::uint64_t number_ = 0;  // of the call that waits
    bool over_ = false;
};

watch_stream::watch_stream(const client& client, const std::string& name, const std::string& prefix)
    : where_(api::core_of(client)),
      latest_(std::make_shared<api::latest_sight>()),
      watching_(watch(
          client, name, [latest = latest_](const sight& seen) { latest->on_sight(seen); },
          {.prefix = prefix, .on_trouble = [latest = latest_](const refusal& why) { latest->on_trouble(why.code); }})) {
}

watch_stream::watch_stream(watch_stream&&) noexcept = default;
watch_stream& watch_stream::operator=(watch_stream&& other) noexcept {
    if (this == &other) return *this;
    stop();
    where_ = std::move(other.where_);
    latest_ = std::move(other.latest_);
    watching_ = std::move(other.watching_);
    return *this;
}
watch_stream::~watch_stream() {
    stop();
}

void watch_stream::start_next(std::unique_ptr<next_completion> handler) {
    where_->check_not_forked();
    latest_->next(std::move(handler));
}

void watch_stream::stop() noexcept {
    if (!latest_) return;
    watching_.stop();
    if (where_->forked()) {
        static_cast<void>(new std::shared_ptr(std::move(latest_)));  // the parent's, with the parent's mutex
        return;
    }
    latest_->stop();
}

}  // namespace holdfast
