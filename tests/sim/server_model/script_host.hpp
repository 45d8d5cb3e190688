// The scripts that one server knows, and the commands about them.
//
// A restart and SCRIPT FLUSH lose that knowledge. Compiled code stays in the engine, so a loss costs the simulation
// nothing.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "server_model/script_engine.hpp"

namespace holdfast::sim {

class script_host {
public:
    script_host(std::shared_ptr<script_engine> engine, key_check check);

    /// `args`: EVAL text numkeys key... arg...
    value eval(context& ctx, arguments args);
    value eval_by_sha1(context& ctx, arguments args);
    value load(std::string_view text);
    bool knows(std::string_view sha1) const;
    void forget_all() { known_.clear(); }

private:
    value run(context& ctx, script_engine::script& which, arguments args);

    std::shared_ptr<script_engine> engine_;
    key_check check_;
    std::unordered_map<std::string_view, script_engine::script*> known_;  // by the engine's SHA1
};

}  // namespace holdfast::sim
