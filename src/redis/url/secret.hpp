// A password, held so that it does not slip out.
//
// Passwords leak in two ways: somebody prints the thing that holds them, or the memory they lay in is read
// later (a core dump, a swap file). So a secret has no output operator and converts to nothing: whoever wants
// the text says `reveal()`, which is easy to search for. And every buffer it ever owned is zeroed before it
// is given back, the small one inside std::string included, which a plain move would leave behind.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::redis {

/// Zeroes all of `text`'s buffer, also the part beyond its size, and leaves it empty.
void wipe(std::string& text) noexcept;

class secret {
public:
    secret() = default;
    explicit secret(std::string text);

    secret(const secret& other) = default;
    secret(secret&& other) noexcept;
    secret& operator=(const secret& other);
    secret& operator=(secret&& other) noexcept;
    ~secret();

    bool empty() const noexcept { return text_.empty(); }

    /// The text itself, valid as long as this object is neither assigned to nor destroyed. For the AUTH command only.
    std::string_view reveal() const noexcept { return text_; }

private:
    std::string text_;
};

}  // namespace holdfast::redis
