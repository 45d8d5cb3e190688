#include <holdfast/shared_mutex.hpp>

#include "api/locks/lock_setup.hpp"

#include <utility>

namespace holdfast {
namespace {

engine::preference to_preference(prefer chosen) {
    switch (chosen) {
        case prefer::readers:
            return engine::preference::readers;
        case prefer::writers:
            return engine::preference::writers;
        case prefer::arrival:
            break;
    }
    return engine::preference::arrival;
}

}  // namespace

api::named_setup api::read_write_setup(const shared_mutex_options& options) {
    named_setup out = common_setup(options);
    out.kind = engine::lock_kind::read_write;
    out.prefer = to_preference(options.prefer);
    return out;
}

shared_mutex::shared_mutex(const client& client, const std::string& name, const shared_mutex_options& options)
    : lockable(client, name, api::read_write_setup(options)) {}

shared_mutex::shared_mutex(const client& client, const std::string& name, const api::named_setup& setup)
    : lockable(client, name, setup) {}

shared_mutex::~shared_mutex() = default;

}  // namespace holdfast
