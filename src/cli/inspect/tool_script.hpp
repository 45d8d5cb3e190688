// A script of the tools' own. They stay out of src/wire/scripts, which is the protocol of the locks: these only look.
#pragma once

#include "redis/session/command.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

class tool_script {
public:
    // `text` is a literal.
    tool_script(std::string_view name, std::string_view text);
    tool_script(const tool_script&) = delete;
    tool_script& operator=(const tool_script&) = delete;

    const redis::script& source() const noexcept { return source_; }

private:
    std::string sha1_;
    redis::script source_;
};

}  // namespace holdfast::cli
