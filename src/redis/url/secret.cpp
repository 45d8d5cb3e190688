// Zeroes with explicit_bzero: the optimiser removes a plain memset of memory that is about to be freed.
#include "redis/url/secret.hpp"

#include <string.h>

namespace holdfast::redis {

void wipe(std::string& text) noexcept {
    text.resize(text.capacity());  // never reallocates, and makes the whole buffer writable
    ::explicit_bzero(text.data(), text.size());
    text.clear();
}

secret& secret::operator=(secret&& other) noexcept {
    if (this == &other) return *this;
    wipe(text_);
    text_.swap(other.text_);
    wipe(other.text_);
    return *this;
}

}  // namespace holdfast::redis
