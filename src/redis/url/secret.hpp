// A password, stored so that it does not leak.
//
// Passwords leak in two ways: somebody prints the object that holds them, or their memory is read later (a core dump, a
// swap file). So a secret has no output operator and no conversion. `reveal()` gives the text, and is easy to search
// for. Every buffer is zeroed before it is freed, also the small one inside std::string, which a plain move would
// leave.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace holdfast::redis {

/// Zeroes the whole buffer of `text`, also beyond its size, and leaves it empty.
void wipe(std::string& text) noexcept;

class secret {
public:
    secret() = default;
    explicit secret(std::string text) : text_(std::move(text)) {
        wipe(text);  // a short text was copied, not moved
    }

    secret(const secret& other) = default;
    secret(secret&& other) noexcept : text_(std::move(other.text_)) { wipe(other.text_); }
    secret& operator=(const secret& other) { return *this = secret(other); }
    secret& operator=(secret&& other) noexcept;
    ~secret() { wipe(text_); }

    friend bool operator==(const secret&, const secret&) = default;
    bool empty() const noexcept { return text_.empty(); }

    /// The text itself, valid until this object is assigned to or destroyed. For the AUTH command only.
    std::string_view reveal() const noexcept { return text_; }

private:
    std::string text_;
};

}  // namespace holdfast::redis
