// The page of `holdfast web`: src/cli/web/page/*, joined to one text at build time.
#pragma once

#include <string_view>

namespace holdfast::cli {

// HTML with its style and its script; `{{nonce}}` is to be replaced by the nonce of the answer's policy.
std::string_view embedded_page() noexcept;

}  // namespace holdfast::cli
