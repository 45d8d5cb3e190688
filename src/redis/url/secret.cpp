// Zeroes with OPENSSL_cleanse: the optimiser removes a plain memset of memory that is about to be freed.
#include "redis/url/secret.hpp"

#include <openssl/crypto.h>

namespace holdfast::redis {

void wipe(std::string& text) noexcept {
    text.resize(text.capacity());  // never reallocates, and makes the whole buffer writable
    OPENSSL_cleanse(text.data(), text.size());
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
