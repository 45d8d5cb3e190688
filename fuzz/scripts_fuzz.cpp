// Every script of a lock on keys with arbitrary contents, on the model of a server: see tests/sim/hostile. A script
// that does not end is stopped by the model after 100 million instructions, and so is one that touches a key that it
// did not declare.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "hostile/hostile_lock.hpp"
#include "server_model/server_model.hpp"

namespace {

using namespace holdfast::sim;

class modelled_server final : public hostile_server {
public:
    explicit modelled_server(std::shared_ptr<script_engine> scripts) : model_({.engine = std::move(scripts)}) {
        model_.set_time(now_us_);
    }
    value run(const call_words& command) override { return model_.execute(command); }
    void pass(std::chrono::milliseconds time) override {
        now_us_ += std::chrono::microseconds(time).count() + 1;
        model_.set_time(now_us_);
    }

private:
    server_model model_;
    std::int64_t now_us_ = hostile_lock::begin_us;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto scripts = std::make_shared<script_engine>();
    const hostile_lock lock(holdfast::fuzz::choices({data, size}));
    modelled_server server(scripts);
    if (const std::string broken = lock.play(server); !broken.empty()) {
        std::fprintf(stderr, "%s%s", lock.describe().c_str(), broken.c_str());
        std::abort();
    }
    return 0;
}
