#include <holdfast/watch.hpp>

#include "api/runtime/client_access.hpp"
#include "api/runtime/core.hpp"
#include "engine/node/lock_watch.hpp"
#include "wire/keys.hpp"

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

    engine::lock_watch* which = nullptr;  // inside the section

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
            if (told->which != nullptr) where->engine().unwatch(*std::exchange(told->which, nullptr), boot_now());
        });
    } catch (const std::bad_alloc&) {
        return;  // it goes on, and nobody is told
    }
}

watching watch(const client& client, const std::string& name, std::function<void(const sight&)> callback,
               const watch_options& options) {
    auto where = api::core_of(client);
    where->check_not_forked();
    if (where->servers() > 1) {
        throw error(errc::bad_option,
                    "a lock can be watched on one server, a primary with replicas, or a Cluster, not on several "
                    "independent servers");
    }
    auto keys = std::make_shared<const wire::lock_keys>(
        wire::make_keys(wire::lock_name(name), wire::key_naming::tagged, options.prefix));
    auto told = std::make_shared<api::watch_callbacks>(*where, std::move(callback), options.on_trouble);
    auto made = std::make_unique<watching::parts>(watching::parts{where, told});
    where->post([core = where.get(), told, keys = std::move(keys)] {
        told->which = &core->engine().watch(keys, told, boot_now());
    });
    return watching(std::move(made));
}

}  // namespace holdfast
