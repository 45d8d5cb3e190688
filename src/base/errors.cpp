#include <holdfast/errors.hpp>

#include "base/errc_table.hpp"

namespace holdfast {
namespace {

class holdfast_category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "holdfast"; }
    std::string message(int value) const override {
        const errc_row* const row = find_errc(static_cast<errc>(value));
        return row != nullptr ? row->message : "unknown holdfast error";
    }
};

}  // namespace

const boost::system::error_category& category() noexcept {
    static const holdfast_category instance;
    return instance;
}

boost::system::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), category()};
}

error::error(errc code, const std::string& detail, std::optional<std::chrono::milliseconds> recovers_in)
    : std::system_error(std::error_code(make_error_code(code)), detail), condition_(code), recovers_in_(recovers_in) {}

}  // namespace holdfast
