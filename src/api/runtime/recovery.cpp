#include "api/runtime/recovery.hpp"

#include "base/boot_clock.hpp"

#include <utility>

namespace holdfast::api {
namespace {

class recovery_look final : public serial_task {
public:
    recovery_look(core& where, const engine::lock_keys& lock) : core_(where), lock_(lock) {}

    engine::recovery wait() {
        core_.enter(*this);
        core_.loop().until(done_);
        return std::move(found_);
    }

private:
    void run() override {
        found_ = core_.engine().recovery_of(lock_, boot_now());
        core_.loop().end(done_);
    }

    core& core_;
    const engine::lock_keys& lock_;
    engine::recovery found_;
    loop::wait done_;
};

}  // namespace

engine::recovery recovery_of(core& where, const engine::lock_keys& lock) {
    return recovery_look(where, lock).wait();
}

}  // namespace holdfast::api
